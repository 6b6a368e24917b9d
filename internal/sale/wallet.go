package sale

import "math/rand/v2"

// bank is what a buyer's bank does where somebody must act.
type bank int

const (
	noBank    bank = iota
	completes      // soon
	fails          // soon; the buyer pays otherwise
	late           // completes, when the order has been given up
)

// wallet is how a buyer pays: methods one after the other, each when the one before was
// declined.
type wallet struct {
	methods []string
	bank    bank // for the first method
}

// usual works.
const usual = "sim_ok"

// wallets are how a hundred buyers pay: most without trouble, and each kind of trouble
// some.
var wallets = []struct {
	buyers int
	wallet
}{
	{49, wallet{[]string{usual}, noBank}},
	{8, wallet{[]string{"sim_decline", usual}, noBank}},
	{7, wallet{[]string{"sim_requires_action"}, completes}},
	{4, wallet{[]string{"sim_requires_action", usual}, fails}},
	{2, wallet{[]string{"sim_requires_action"}, noBank}}, // walks away from the bank's page
	{4, wallet{[]string{"sim_timeout_applied"}, noBank}},
	{1, wallet{[]string{"sim_timeout_lost"}, noBank}},
	{3, wallet{[]string{"sim_slow"}, noBank}},
	{1, wallet{[]string{"sim_error"}, noBank}},
	{2, wallet{[]string{"sim_capture_fails"}, noBank}},
	{3, wallet{[]string{"sim_capture_timeout"}, noBank}},
	{4, wallet{[]string{"sim_webhook_late"}, noBank}},
	{4, wallet{[]string{"sim_webhook_twice"}, noBank}},
	{4, wallet{[]string{"sim_transfer"}, completes}},
	{2, wallet{[]string{"sim_transfer"}, late}},
	{2, wallet{[]string{"sim_transfer"}, noBank}},
}

// deck is the wallets of a hundred buyers, shuffled. Dealt in the order of arrival, it
// gives a small sale its share of trouble too.
func (p Plan) deck() []wallet {
	var deck []wallet
	for _, w := range wallets {
		for range w.buyers {
			deck = append(deck, w.wallet)
		}
	}
	r := rand.New(rand.NewPCG(p.Seed, 0xdecc))
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// refund is what a buyer wants back in the end.
type refund int

const (
	nothing    refund = iota
	everything        // the tickets go back
	oneTicket         // goes back
	half              // of the money; the tickets are kept
)

// refunds are how often each refund occurs among twenty buyers.
var refunds = [20]refund{17: everything, 18: oneTicket, 19: half}
