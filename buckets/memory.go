package buckets

import "github.com/tierledger/tierledger/ledger"

// OpenCommand is the command that opens an event in its own journal, for a
// journal in memory; Store.Create does it for a real one. Errors are those of a
// spec that can't be an event.
func OpenCommand(journal ledger.JournalID, spec Spec) (ledger.Command, error) {
	if err := spec.normalize(); err != nil {
		return ledger.Command{}, err
	}
	return openCommand(journal, &spec)
}

func openCommand(journal ledger.JournalID, spec *Spec) (ledger.Command, error) {
	return ledger.NewCommand(journal, ledger.SystemPrincipal, KindEventOpened, KindEventOpened, spec, &open{spec})
}
