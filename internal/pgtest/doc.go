// Package pgtest gives tests real PostgreSQL databases, each of its own.
//
// A test binary gets one private server (fsync off), started by the first test
// that asks for a database; a template is migrated once, and each database is a
// clone of it:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestPlace(t *testing.T) {
//		db := pgtest.New(t) // ends with the check of every invariant
//		pool := connect(t, db.ServiceURL())
//		...
//	}
//
// A test that crashes or reconfigures its server asks for Private instead.
// Servers listen only on unix sockets in folders of their own.
package pgtest
