package orders

// Every statement that serves reads, and the janitor's search for what is due.
const (
	sqlOrder = `
SELECT ` + orderColumns + `
FROM orders
WHERE journal_id = $1
  AND order_id = $2`

	listOrders = `
SELECT ` + orderColumns + `
FROM orders
WHERE journal_id = $1
  AND order_id > $2
  AND ($3 = '' OR status = $3)`
	listOrdersEnd = `
ORDER BY order_id
LIMIT $4`
	sqlAllOrders        = listOrders + listOrdersEnd
	sqlOrdersOfCustomer = listOrders + `
  AND customer = $5` + listOrdersEnd

	// What never changes about an order; it's paid with the provider that it began with.
	firstProvider = `
       coalesce((SELECT f.provider
                 FROM operations f
                 WHERE f.journal_id = o.journal_id
                   AND f.order_id = o.order_id
                 ORDER BY f.kind, f.attempt
                 LIMIT 1), '')`

	sqlRefOfOrder = `
SELECT o.order_id, o.hold_id, o.customer, ` + firstProvider + `
FROM orders o
WHERE o.journal_id = $1
  AND o.order_id = $2`

	// Fenced, as the batch's reads are: a join is planned on an empty table, and kept.
	sqlRefOfOperation = `
SELECT o.order_id, o.hold_id, o.customer, p.provider
FROM (
    SELECT *
    FROM operations
    WHERE journal_id = $1
      AND operation_id = $2
    OFFSET 0) p
CROSS JOIN LATERAL (
    SELECT *
    FROM orders
    WHERE journal_id = $1
      AND order_id = p.order_id
    OFFSET 0) o`

	sqlDueOperations = `
SELECT p.journal_id, p.order_id, o.hold_id, o.customer, p.provider, p.operation_id
FROM (
    SELECT *
    FROM operations
    WHERE due_at <= (SELECT clock_timestamp())
    ORDER BY due_at
    LIMIT $1) p
CROSS JOIN LATERAL (
    SELECT *
    FROM orders
    WHERE journal_id = p.journal_id
      AND order_id = p.order_id
    OFFSET 0) o`

	sqlDueOrders = `
SELECT o.journal_id, o.order_id, o.hold_id, o.customer, ` + firstProvider + `, o.order_id
FROM orders o
WHERE o.due_at <= (SELECT clock_timestamp())
ORDER BY o.due_at
LIMIT $1`

	sqlDueWebhooks = `
SELECT journal_id, provider, event_id, type, operation_id, body, received_at, tries
FROM webhooks
WHERE due_at <= (SELECT clock_timestamp())
ORDER BY due_at
LIMIT $1`

	// What waits for an outcome, and since when.
	sqlUnsettled = `
SELECT count(*) FILTER (WHERE status IN ('sent', 'pending', 'unknown')),
       coalesce(extract(epoch FROM clock_timestamp() - min(sent_at) FILTER (WHERE status IN ('sent', 'pending', 'unknown'))), 0)::float8,
       (SELECT count(*) FROM webhooks WHERE due_at IS NOT NULL)
FROM operations
WHERE due_at IS NOT NULL`

	sqlByID = `
SELECT ` + operationColumns + `
FROM unnest($2::bigint[], $3::uuid[]) AS k (journal, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM operations
    WHERE journal_id = k.journal
      AND operation_id = k.id
      AND provider = $1
    OFFSET 0) o`

	sqlOperation = `
SELECT ` + operationColumns + `
FROM operations
WHERE journal_id = $1
  AND operation_id = $2`

	sqlMoved = `
SELECT ` + operationColumns + `
FROM operations
WHERE provider = $1
  AND told_at >= $2
  AND told_at < $3
  AND status = 'succeeded'
  AND (taken > 0 OR kind IN ('capture', 'refund', 'chargeback'))
ORDER BY told_at`
	sqlOfPayments = `
SELECT ` + operationColumns + `
FROM operations
WHERE provider = $1
  AND payment = ANY ($2::text[])`
)
