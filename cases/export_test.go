package cases

// Statements are the package's SQL, for the test that prepares them.
var Statements = map[string]string{
	"sqlBatchCases":    sqlBatchCases,
	"sqlCasesOfOrders": sqlCasesOfOrders,
	"sqlKeepCase":      sqlKeepCase,
	"sqlCase":          sqlCase,
	"sqlListCases":     sqlListCases,
	"sqlDueCases":      sqlDueCases,
	"sqlCountOpen":     sqlCountOpen,
}
