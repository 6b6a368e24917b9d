// Package load puts load on a server of this machine and measures what comes
// back. The benchmark and the demo stand on it.
//
// A Client is one keep-alive connection. It costs little, because it usually
// shares the processors with the server that it measures: one write and one
// read a request. Closed and Open are the two ways to load a server: so many
// clients that never rest, or so many requests a second whoever is free. A
// Recorder counts the outcomes and keeps the latencies.
//
// Everything is bounded, in time or number, and nothing but loopback is ever
// connected to.
package load
