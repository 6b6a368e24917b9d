// Package sale plays the buyers of a ticket sale against the HTTP API: a rush at
// the opening, more tickets wanted than there are, and people as they are. Most pay
// for what they hold, some walk away, some change their minds, some send a request
// twice, some try to get more than they may.
//
// They pay with the simulated provider, and payments are as they are, too: declined
// and tried otherwise, approved by a bank or not, answered late or not at all, done
// although the answer said nothing, captured in vain, paid by transfer in time, late
// or never. Who gets no answer asks again under the same key; who gets none yet looks
// at the order until it's settled; some want their money back.
//
// Some come for assigned seats: parties who choose on the map what looks free, and choose
// again when it's gone, or who ask for the best side by side; some want tickets without
// seats, too. Readers follow the map by its changes, hang up and resume.
//
// The buyers write down what the API answered them. When the sale is over, their
// receipts are the other side of the books: every reading of the availability that
// was taken in between must be what the receipts add up to at that version, every
// hold must have ended as its buyer thinks, and every order must have cost what the
// provider's own settlement report says that it took, once. Every seat must be where
// the receipts say, on the map of every reader and at every version that the reader
// knew, and one that's sold must have one owner. Whatever doesn't agree, and every
// answer that must not be, is a Surprise in the report.
package sale
