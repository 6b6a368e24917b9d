package recon

import "github.com/tierledger/tierledger/fault"

// Codes of a report's import, in the order in which they're judged.
var (
	ErrReportUnreadable = &fault.Def{Kind: fault.Unprocessable, Code: "report_unreadable",
		Title: "The report isn't one that the provider writes; nothing of it was booked."}
	ErrReportContradicts = &fault.Def{Kind: fault.Unprocessable, Code: "report_contradicts",
		Title: "The report tells a line otherwise than an earlier report did."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def { return []*fault.Def{ErrReportUnreadable, ErrReportContradicts} }
