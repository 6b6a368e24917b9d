package orders

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Every statement on orders, operations, checkouts and webhooks that changes them or
// serves a decision; those that serve reads and the janitor are in sql_read.go.
const (
	orderColumns = `order_id, hold_id, customer, status, reconciling, payment_status, items, face, fee, tax, captured,
       refunded_face, refunded_fee, refunded_tax, created_at, pay_until, due_at, version`

	sqlBatchOrders = `
SELECT ` + orderColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM orders
    WHERE journal_id = $1
      AND order_id = k.id
    OFFSET 0) o`

	operationColumns = `operation_id, order_id, kind, attempt, status, provider, method, return_url, payment, reference,
       amount, currency, authorized, taken, face, fee, tax, disputed, reason, next_action, sends, sent_at, told_at,
       due_at, answered, updated_at, version`

	sqlBatchOperations = `
SELECT ` + operationColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM operations
    WHERE journal_id = $1
      AND order_id = k.id
    OFFSET 0) o`

	sqlPendingOf = `
SELECT k.customer, o.n
FROM unnest($2::text[]) AS k (customer)
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM orders
    WHERE journal_id = $1
      AND customer = k.customer
      AND status = 'pending'
    OFFSET 0) o`

	sqlPending = `
SELECT pending
FROM checkouts
WHERE journal_id = $1`

	sqlKeepPending = `
INSERT INTO checkouts (journal_id, pending)
VALUES ($1, $2)
ON CONFLICT (journal_id) DO UPDATE
SET pending = excluded.pending`

	sqlInsertOrders = `
INSERT INTO orders (journal_id, ` + orderColumns + `)
SELECT $1, o.order_id, o.hold_id, o.customer, o.status, o.reconciling, o.payment_status, o.items::json, o.face, o.fee,
       o.tax, o.captured, o.refunded_face, o.refunded_fee, o.refunded_tax, o.created_at, o.pay_until, o.due_at, o.version
FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::text[], $9::bigint[],
            $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::bigint[])
     AS o (order_id, hold_id, customer, status, reconciling, payment_status, items, face, fee, tax, captured,
           refunded_face, refunded_fee, refunded_tax, created_at, pay_until, due_at, version)`

	sqlUpdateOrders = sqlInsertOrders + `
ON CONFLICT (journal_id, order_id) DO UPDATE
SET status = excluded.status,
    reconciling = excluded.reconciling,
    payment_status = excluded.payment_status,
    items = excluded.items,
    captured = excluded.captured,
    refunded_face = excluded.refunded_face,
    refunded_fee = excluded.refunded_fee,
    refunded_tax = excluded.refunded_tax,
    due_at = excluded.due_at,
    version = excluded.version`

	sqlInsertOperations = `
INSERT INTO operations (journal_id, ` + operationColumns + `)
SELECT $1, o.operation_id, o.order_id, o.kind, o.attempt, o.status, o.provider, o.method, o.return_url, o.payment,
       o.reference, o.amount, o.currency, o.authorized, o.taken, o.face, o.fee, o.tax, o.disputed, o.reason,
       o.next_action::json, o.sends, o.sent_at, o.told_at, o.due_at, o.answered, o.updated_at, o.version
FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::text[],
            $10::text[], $11::text[], $12::bigint[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[],
            $17::bigint[], $18::bigint[], $19::bigint[], $20::text[], $21::text[], $22::integer[], $23::timestamptz[],
            $24::timestamptz[], $25::timestamptz[], $26::bigint[], $27::timestamptz[], $28::bigint[])
     AS o (operation_id, order_id, kind, attempt, status, provider, method, return_url, payment, reference, amount,
           currency, authorized, taken, face, fee, tax, disputed, reason, next_action, sends, sent_at, told_at, due_at,
           answered, updated_at, version)`

	sqlUpdateOperations = sqlInsertOperations + `
ON CONFLICT (journal_id, operation_id) DO UPDATE
SET status = excluded.status,
    payment = excluded.payment,
    reference = excluded.reference,
    authorized = excluded.authorized,
    taken = excluded.taken,
    face = excluded.face,
    fee = excluded.fee,
    tax = excluded.tax,
    disputed = excluded.disputed,
    reason = excluded.reason,
    next_action = excluded.next_action,
    sends = excluded.sends,
    sent_at = excluded.sent_at,
    told_at = excluded.told_at,
    due_at = excluded.due_at,
    answered = excluded.answered,
    updated_at = excluded.updated_at,
    version = excluded.version`

	sqlKeepWebhooks = `
INSERT INTO webhooks (journal_id, provider, event_id, type, operation_id, body, received_at, status, tries, due_at, version)
SELECT $1, w.provider, w.event_id, w.type, w.operation_id, w.body, w.received_at, w.status, w.tries, w.due_at, w.version
FROM unnest($2::text[], $3::text[], $4::text[], $5::uuid[], $6::bytea[], $7::timestamptz[], $8::text[], $9::integer[],
            $10::timestamptz[], $11::bigint[])
     AS w (provider, event_id, type, operation_id, body, received_at, status, tries, due_at, version)
ON CONFLICT (journal_id, provider, event_id) DO UPDATE
SET status = excluded.status,
    tries = excluded.tries,
    due_at = excluded.due_at,
    version = excluded.version
WHERE webhooks.status = 'parked'`
)

// scanOrder reads a row. The event's name and currency are the event's to say.
func scanOrder(row pgx.CollectableRow) (*Order, error) {
	o := &Order{}
	var items []byte
	p, r := &o.Parts, &o.RefundedParts
	err := row.Scan(&o.ID, &o.HoldID, &o.Customer, &o.Status, &o.Reconciling, &o.PaymentStatus, &items,
		&p.Face, &p.Fee, &p.Tax, &o.Captured.Amount, &r.Face, &r.Fee, &r.Tax, &o.CreatedAt, &o.PayUntil, &o.dueAt, &o.Version)
	if err != nil {
		return nil, err
	}
	o.CreatedAt, o.PayUntil = o.CreatedAt.UTC(), o.PayUntil.UTC()
	o.Operations = []*Operation{}
	return o, json.Unmarshal(items, &o.Items)
}

// scanOperation reads a row.
func scanOperation(row pgx.CollectableRow) (*Operation, error) {
	op := &Operation{}
	var action []byte
	err := row.Scan(&op.ID, &op.Order, &op.Kind, &op.Attempt, &op.Status, &op.Provider, &op.method, &op.returnURL,
		&op.Payment, &op.Reference, &op.Amount.Amount, &op.Amount.Currency, &op.authorized, &op.taken,
		&op.parts.Face, &op.parts.Fee, &op.parts.Tax, &op.disputed, &op.Reason, &action, &op.sends, &op.sentAt, &op.ToldAt, &op.NextAttemptAt, &op.Answered, &op.UpdatedAt, &op.Version)
	if err != nil {
		return nil, err
	}
	op.UpdatedAt = op.UpdatedAt.UTC()
	if op.NextAttemptAt != nil {
		*op.NextAttemptAt = op.NextAttemptAt.UTC()
	}
	if action != nil {
		op.nextAction = &payments.NextAction{}
		return op, json.Unmarshal(action, op.nextAction)
	}
	return op, nil
}

// queueOrders queues a statement that takes orders' columns as arrays, of basic types:
// pgx encodes those without reflection.
func queueOrders(q *ledger.Writes, sql string, list []*Order) {
	n := len(list)
	if n == 0 {
		return
	}
	ids, holdIDs := make([][16]byte, n), make([][16]byte, n)
	customers, statuses, payStatuses, items := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	reconciling := make([]bool, n)
	var amounts [7][]int64 // face, fee, tax, captured, refunded_face, refunded_fee, refunded_tax
	for i := range amounts {
		amounts[i] = make([]int64, n)
	}
	created, payUntil, due, versions := make([]time.Time, n), make([]time.Time, n), make([]*time.Time, n), make([]int64, n)
	for i, o := range list {
		text, err := json.Marshal(o.Items)
		if err != nil {
			panic(err) // an Item has nothing that can't be JSON
		}
		ids[i], holdIDs[i], customers[i], statuses[i] = o.ID, o.HoldID, o.Customer, string(o.Status)
		reconciling[i], payStatuses[i], items[i] = o.Reconciling, string(o.PaymentStatus), string(text)
		for j, amount := range []int64{
			int64(o.Parts.Face), int64(o.Parts.Fee), int64(o.Parts.Tax), int64(o.Captured.Amount),
			int64(o.RefundedParts.Face), int64(o.RefundedParts.Fee), int64(o.RefundedParts.Tax),
		} {
			amounts[j][i] = amount
		}
		created[i], payUntil[i], due[i], versions[i] = o.CreatedAt, o.PayUntil, o.dueAt, int64(o.Version)
	}
	q.Queue(sql, ids, holdIDs, customers, statuses, reconciling, payStatuses, items, amounts[0], amounts[1], amounts[2],
		amounts[3], amounts[4], amounts[5], amounts[6], created, payUntil, due, versions)
}

// queueOperations queues a statement that takes operations' columns as arrays.
func queueOperations(q *ledger.Writes, sql string, list []*Operation) {
	n := len(list)
	if n == 0 {
		return
	}
	ids, orderIDs := make([][16]byte, n), make([][16]byte, n)
	var texts [9][]string // kind, status, provider, method, return_url, payment, reference, reason, currency
	for i := range texts {
		texts[i] = make([]string, n)
	}
	var numbers [9][]int64 // amount, authorized, taken, face, fee, tax, disputed, answered, version
	for i := range numbers {
		numbers[i] = make([]int64, n)
	}
	attempts, sends, actions := make([]int32, n), make([]int32, n), make([]*string, n)
	sent, told, due, updated := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]time.Time, n)
	for i, op := range list {
		ids[i], orderIDs[i] = op.ID, op.Order
		for j, text := range []string{
			string(op.Kind), string(op.Status), op.Provider, op.method, op.returnURL, op.Payment, op.Reference, op.Reason,
			string(op.Amount.Currency),
		} {
			texts[j][i] = text
		}
		for j, number := range []int64{
			int64(op.Amount.Amount), int64(op.authorized), int64(op.taken), int64(op.parts.Face), int64(op.parts.Fee), int64(op.parts.Tax),
			int64(op.disputed), int64(op.Answered), int64(op.Version),
		} {
			numbers[j][i] = number
		}
		attempts[i], sends[i] = int32(op.Attempt), int32(op.sends)
		if op.nextAction != nil {
			text, err := json.Marshal(op.nextAction)
			if err != nil {
				panic(err) // strings
			}
			actions[i] = new(string(text))
		}
		sent[i], told[i], due[i], updated[i] = op.sentAt, op.ToldAt, op.NextAttemptAt, op.UpdatedAt
	}
	q.Queue(sql, ids, orderIDs, texts[0], attempts, texts[1], texts[2], texts[3], texts[4], texts[5], texts[6], numbers[0],
		texts[8], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], texts[7], actions, sends, sent, told, due,
		numbers[7], updated, numbers[8])
}

// queueWebhooks queues the webhooks that came or were tried again.
func queueWebhooks(q *ledger.Writes, list []*webhook) {
	n := len(list)
	if n == 0 {
		return
	}
	providers, events, types, statuses := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	operations, bodies := make([]*uuid.UUID, n), make([][]byte, n)
	received, due, tries, versions := make([]time.Time, n), make([]*time.Time, n), make([]int32, n), make([]int64, n)
	for i, w := range list {
		providers[i], events[i], types[i], statuses[i] = w.provider, w.event, w.kind, string(w.status)
		if w.operation != uuid.Nil {
			operations[i] = &w.operation
		}
		bodies[i], received[i], due[i], tries[i], versions[i] = w.body, w.receivedAt, w.dueAt, int32(w.tries), int64(w.version)
	}
	q.Queue(sqlKeepWebhooks, providers, events, types, operations, bodies, received, statuses, tries, due, versions)
}
