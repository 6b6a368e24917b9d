// Package embedded runs the two servers of a self-contained tierledger: a
// private PostgreSQL (a child process made of the machine's own binaries) and
// an in-process NATS server with JetStream. Both keep their files in one store
// folder:
//
//	lock             flock and process id of whoever uses the store
//	postgres/        the cluster, or a link to it when root can't keep it here
//	postgres.log     the PostgreSQL server's log, appended
//	postgres.socket  the folder of the running server's unix socket
//	nats/            JetStream's files
//
// The caller owns the order: LockStore (or TempStore), then StartPostgres and
// StartNATS, and back again at the end. StartPostgres takes the lock for
// granted: it stops any server process that it finds on the cluster, because
// under the lock that can only be what a killed parent left behind.
//
// What a crash leaves: the lock goes with the process; on Linux the PostgreSQL
// server gets a fast shutdown from the kernel when its parent ends, elsewhere
// the next StartPostgres stops it; an interrupted initdb leaves a folder that
// is never taken for a cluster and is removed at the next start.
package embedded
