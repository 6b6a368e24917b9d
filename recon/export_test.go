package recon

// Statements are the package's SQL, for the test that prepares them.
var Statements = map[string]string{
	"sqlBatchLines":      sqlBatchLines,
	"sqlInsertLines":     sqlInsertLines,
	"sqlJudgeLines":      sqlJudgeLines,
	"sqlKnownLines":      sqlKnownLines,
	"sqlClaims":          sqlClaims,
	"sqlSpan":            sqlSpan,
	"sqlProviderBalance": sqlProviderBalance,
}
