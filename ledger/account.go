package ledger

import "strings"

// Amount counts a unit: tickets of a tier, or minor units of a currency.
// Debit is positive, credit negative.
type Amount int64

// Unit is what an account counts: a currency (USD), a tier (ga), or a memo unit
// (USD.AUTH). Tiers are lower case, so a unit tells its class.
type Unit string

// memoSuffix marks units that aren't money yet, such as authorizations.
const memoSuffix = ".AUTH"

// Currency gives the currency that u counts, as money or as a memo of money;
// false for a tier.
func (u Unit) Currency() (c Unit, memo, ok bool) {
	base, memo := strings.CutSuffix(string(u), memoSuffix)
	_, ok = Unit(base).Exponent()
	return Unit(base), memo, ok
}

// Type says what sort of account it is.
type Type string

// The types of account.
const (
	Asset     Type = "asset"
	Liability Type = "liability"
	Income    Type = "income"
	Expense   Type = "expense"
	Equity    Type = "equity"
	Inventory Type = "inventory" // tickets; see mayHave for the sign
	Memo      Type = "memo"      // facts that aren't money yet
)

// The inventory accounts; their unit is the tier.
const (
	Capacity  = "capacity"  // contra: minus the tickets that exist
	Available = "available" // free to hold; available:<allotment> for who buys from one
	Held      = "held"      // control account over held:<customer>
	Sold      = "sold"      // control account over sold:<customer>
	Blocked   = "blocked"   // kept off the sale by an operator
	Transit   = "transit"   // sent to other lanes, less what came from them; transit:<allotment> too
	Void      = "void"      // destroyed
)

// The accounts of access codes; their unit is Uses.
const (
	codeFree     = "code"     // uses of a code that nobody has taken
	codeRedeemed = "redeemed" // uses that holds took
)

// Uses is what access codes are counted in. No tier can have the name.
const Uses Unit = "_uses"

// InventoryCodes lists the inventory accounts that every tier may have; in a
// journal their balances sum to zero per tier.
var InventoryCodes = []string{Capacity, Available, Held, Sold, Blocked, Transit, Void}

// AccountKey addresses an account in a journal.
type AccountKey struct {
	Code string // colon path
	Unit Unit
}

// Account is a place where one unit rests.
type Account struct {
	AccountKey
	Type    Type
	Control string // the control account above it, "" for none
	Balance Amount
	Version Seq // of the last entry that touched it, 0 for none
}

// HeldBy is the account of what a customer holds; SoldTo of what one owns.
func HeldBy(customer string) string { return Held + ":" + customer }

// SoldTo is the account of what a customer owns.
func SoldTo(customer string) string { return Sold + ":" + customer }

// FreeOf is the account of the tickets that an allotment has free; those that are
// everybody's for "".
func FreeOf(allotment string) string {
	if allotment == "" {
		return Available
	}
	return Available + ":" + allotment
}

// Free tells whether an account is one that FreeOf names, and the allotment.
func Free(account string) (allotment string, ok bool) {
	name, allotment, _ := strings.Cut(account, ":")
	if name != Available {
		return "", false
	}
	return allotment, true
}

// TransitTo is the account of what is under way to an account that FreeOf or FreeUses names.
func TransitTo(account string) string {
	if _, name, below := strings.Cut(account, ":"); below {
		return Transit + ":" + name
	}
	return Transit
}

// UnderWay tells whether an account is one that TransitTo names.
func UnderWay(account string) bool {
	name, _, _ := strings.Cut(account, ":")
	return name == Transit
}

// FreeUses is the account of the uses that an access code has left.
func FreeUses(code string) string { return codeFree + ":" + code }

// RedeemedUses is the account of the uses of an access code that holds took.
func RedeemedUses(code string) string { return codeRedeemed + ":" + code }

// head describes the accounts whose path begins with a name.
type head struct {
	kind    Type
	paths   int  // how many names may follow: 0 or more
	must    int  // how many must follow
	control bool // the bare name is the sum of the paths below it
	manual  bool // a person may post to it
}

// chart lists every account there may be, by the first name of its path.
var chart = map[string]head{
	Capacity:  {kind: Inventory},
	Available: {kind: Inventory, paths: 1, manual: true}, // the bare name alone; see classify
	Held:      {kind: Inventory, paths: 1, must: 1, control: true},
	Sold:      {kind: Inventory, paths: 1, must: 1, control: true},
	Blocked:   {kind: Inventory, manual: true},
	Transit:   {kind: Inventory, paths: 1},
	Void:      {kind: Inventory, manual: true},

	codeFree:     {kind: Inventory, paths: 1, must: 1},
	codeRedeemed: {kind: Inventory, paths: 1, must: 1},

	"provider":        {kind: Asset, paths: 1, must: 1, manual: true},
	"capture-pending": {kind: Asset, paths: 1, must: 1},
	"in-transit":      {kind: Asset, paths: 1, must: 1, manual: true},
	"bank":            {kind: Asset, paths: 1, must: 1, manual: true},
	"disputes":        {kind: Asset, paths: 1, must: 1, manual: true},

	"organiser":       {kind: Liability, paths: 2, must: 1, manual: true},
	"tax":             {kind: Liability, paths: 1, must: 1, manual: true},
	"suspense":        {kind: Liability, paths: 1, must: 1},
	"refunds-pending": {kind: Liability, paths: 1, must: 1},
	"prepaid":         {kind: Liability, paths: 2, must: 2, manual: true},

	"fees":            {kind: Expense, paths: 3, must: 1, manual: true}, // but see TypeOf
	"chargeback-loss": {kind: Expense, manual: true},
	"rounding":        {kind: Expense, manual: true},
	"equity":          {kind: Equity, paths: 1, manual: true},
	"auth":            {kind: Memo, paths: 1, must: 1},
}

// feesPlatform is what the platform earns; the other fees are what it pays.
const feesPlatform = "fees:platform"

// maxCode bounds an account's path, in bytes.
const maxCode = 200

// mayHave tells whether an inventory account may have a balance: tickets can't be owed.
// Capacity is the contra account; a lane may have sent more than it got, or less.
func mayHave(code string, balance Amount) bool {
	switch name, _, _ := strings.Cut(code, ":"); name {
	case Capacity:
		return balance <= 0
	case Transit:
		return true
	}
	return balance >= 0
}

// classify finds an account's place in the chart; false when it has none.
func classify(code string) (head, bool) {
	if len(code) > maxCode {
		return head{}, false
	}
	first, rest, more := strings.Cut(code, ":")
	h, ok := chart[first]
	if !ok {
		return head{}, false
	}
	n := 0
	for more {
		var name string
		name, rest, more = strings.Cut(rest, ":")
		if !validName(name) {
			return head{}, false
		}
		n++
	}
	if n > h.paths || n < h.must && !(h.control && n == 0) {
		return head{}, false
	}
	switch {
	case code == feesPlatform:
		h.kind = Income
	case first == Available && n > 0:
		h.manual = false
	}
	return h, true
}

// validName allows what a path, a URL and a bookkeeping file can all carry:
// letters, digits and . _ ~ @ + = | - without quoting.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("._~@+=|-", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// ValidCustomer tells whether s can name a customer: 1 to 128 letters, digits
// and . _ ~ @ + = | -.
func ValidCustomer(s string) bool { return len(s) <= 128 && validName(s) }

// newAccount makes the account that key addresses, with nothing on it.
func newAccount(key AccountKey) (Account, bool) {
	h, ok := classify(key.Code)
	if !ok || !h.fits(key.Unit) {
		return Account{}, false
	}
	a := Account{AccountKey: key, Type: h.kind}
	if name, _, below := strings.Cut(key.Code, ":"); h.control && below {
		a.Control = name
	}
	return a, true
}

// withControl gives a code, and the code of the control account above it.
func withControl(code string) []string {
	if name, _, below := strings.Cut(code, ":"); below && chart[name].control {
		return []string{code, name}
	}
	return []string{code}
}

// fits tells whether an account of this place can count the unit.
func (h head) fits(u Unit) bool {
	_, memo, money := u.Currency()
	switch h.kind {
	case Inventory:
		return !money
	case Memo:
		return money && memo
	default:
		return money && !memo
	}
}
