package tickets

import (
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
)

// Codes of Get and Keys.
var (
	ErrTicketNotFound = &fault.Def{Kind: fault.NotFound, Code: "ticket_not_found",
		Title: "There's no such ticket."}
	ErrNoTicketKeys = &fault.Def{Kind: fault.NotFound, Code: "no_ticket_keys",
		Title: "This service signs no tickets: it has no secret."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def { return []*fault.Def{ErrTicketNotFound, ErrNoTicketKeys} }

func notFound(id uuid.UUID) error { return ErrTicketNotFound.Because("%s", id).With("ticket_id", id) }
