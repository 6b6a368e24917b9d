package orders_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

func TestStatementsFitTheSchema(t *testing.T) {
	pgtest.Prepare(t, pgtest.New(t), orders.Statements, "sql.go", "sql_read.go")
}

func TestPurchase(t *testing.T) {
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	if o.Status != orders.Captured || o.PaymentStatus != orders.PaymentCaptured {
		t.Fatalf("the order is %s, its payment %s", o.Status, o.PaymentStatus)
	}
	s.expect(map[string]ledger.Amount{
		"provider:sim USD": 10606, "organiser:org USD": -10000, "fees:platform USD": -500, "tax:sales USD": -106,
		"capture-pending:sim USD": 0, "auth:open USD.AUTH": 0, "sold:ann ga": 2, "available ga": 98,
	})
}
