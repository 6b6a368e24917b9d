// Package cases keeps what reconciliation must resolve: differences and late facts, each
// as a case with its reason, its age, whose turn it is, and what was verified last.
//
// # States
//
//	open              -> awaiting_approval   a person proposed a resolution
//	open              -> resolving           the event's policy decided
//	open              -> resolved            policy decided, and it's done; or by evidence
//	awaiting_approval -> open                another person rejected it
//	awaiting_approval -> resolving           another person approved it
//	awaiting_approval -> resolved            approved, and it's done; or evidence overtook it
//	resolving         -> resolved            the provider did what was decided
//	resolving         -> open                the provider refused it
//
// Resolved is final. What a person decides takes two: the one who approves isn't the one
// who proposed, which the database holds too.
//
// A case is opened, and moved, in the entry of the fact that does it: its row rides along
// in the commands of packages orders and recon.
package cases
