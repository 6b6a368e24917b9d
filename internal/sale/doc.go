// Package sale plays the buyers of a ticket sale against the HTTP API: a rush at
// the opening, more tickets wanted than there are, and people as they are. Some
// keep what they hold, some walk away, some change their minds, some send a request
// twice, some try to get more than they may.
//
// The buyers write down what the API answered them. When the sale is over, their
// receipts are the other side of the books: every reading of the availability that
// was taken in between must be what the receipts add up to at that version, and
// every hold must have ended as its buyer thinks. Whatever doesn't agree, and every
// answer that must not be, is a Surprise in the report.
//
// In this version nothing is paid, so every hold ends: it's released or runs out.
// A buyer who keeps tickets claims them again, like everybody else, until the sale
// is over.
package sale
