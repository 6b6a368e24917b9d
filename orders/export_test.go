package orders

// Statements are the package's SQL, for the test that prepares them.
var Statements = map[string]string{
	"sqlBatchOrders":      sqlBatchOrders,
	"sqlBatchOperations":  sqlBatchOperations,
	"sqlPendingOf":        sqlPendingOf,
	"sqlPending":          sqlPending,
	"sqlKeepPending":      sqlKeepPending,
	"sqlInsertOrders":     sqlInsertOrders,
	"sqlUpdateOrders":     sqlUpdateOrders,
	"sqlInsertOperations": sqlInsertOperations,
	"sqlUpdateOperations": sqlUpdateOperations,
	"sqlKeepWebhooks":     sqlKeepWebhooks,
	"sqlOrder":            sqlOrder,
	"sqlAllOrders":        sqlAllOrders,
	"sqlOrdersOfCustomer": sqlOrdersOfCustomer,
	"sqlRefOfOrder":       sqlRefOfOrder,
	"sqlRefOfOperation":   sqlRefOfOperation,
	"sqlDueOperations":    sqlDueOperations,
	"sqlDueOrders":        sqlDueOrders,
	"sqlDueWebhooks":      sqlDueWebhooks,
	"sqlUnsettled":        sqlUnsettled,
	"sqlByID":             sqlByID,
	"sqlOperation":        sqlOperation,
	"sqlMoved":            sqlMoved,
	"sqlOfPayments":       sqlOfPayments,
}

// Split divides a refund over the parts of an order.
var Split = split
