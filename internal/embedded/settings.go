package embedded

import (
	"context"
	"maps"
	"slices"
)

// setting is one server setting. They are given on the command line at every
// start, so the cluster keeps none and a new version of ours changes them all.
type setting struct{ name, value string }

// safeSettings suit a write-heavy ledger on a small machine that it shares with
// its clients.
var safeSettings = []setting{
	{"fsync", "on"},              // a commit that was answered outlives the machine
	{"synchronous_commit", "on"}, // and the server
	{"full_page_writes", "on"},   // pages torn by a power failure are repaired

	{"shared_buffers", "256MB"},             // a whole hot event; more would only double the page cache
	{"wal_buffers", "16MB"},                 // a segment: batches don't wait for WAL room
	{"max_wal_size", "4GB"},                 // checkpoints by time, not by volume, in a sale
	{"checkpoint_timeout", "15min"},         // fewer full-page images; recovery may take a minute
	{"checkpoint_completion_target", "0.9"}, // spread their writes over the interval
	{"max_connections", "100"},              // commits are grouped: a pool of some tens is plenty
	{"jit", "off"},                          // statements are short; compiling costs more than it saves
	{"autovacuum", "on"},                    // balances are updated all the time
}

// unsafeSettings replace safe ones for tests: nothing is flushed, so a crash of
// the machine may lose the cluster.
var unsafeSettings = []setting{
	{"fsync", "off"},
	{"synchronous_commit", "off"},
	{"full_page_writes", "off"},
	{"shared_buffers", "128MB"}, // several servers may run side by side
}

// commonSettings are the same everywhere, so that behaviour is too.
var commonSettings = []setting{
	{"timezone", "UTC"},
	{"log_timezone", "UTC"},
	{"logging_collector", "off"}, // standard error is our log file
	{"log_destination", "stderr"},
	{"log_line_prefix", "%m [%p] %d "}, // time, process, database
}

// fixedSettings can't be overridden: the cluster trusts whoever connects, so
// nobody but the server's user and root may get to it.
func fixedSettings(socketFolder string) []setting {
	return []setting{
		{"listen_addresses", ""},
		{"unix_socket_directories", socketFolder},
		{"unix_socket_permissions", "0700"},
		{"port", "5432"}, // part of the socket's name, not a port
	}
}

// arguments returns the server's command line; of a setting that comes twice
// the later one counts.
func arguments(o PostgresOptions, cluster, socketFolder, walCompression string) []string {
	all := slices.Concat(safeSettings, commonSettings)
	if o.Unsafe {
		all = append(all, unsafeSettings...)
	}
	all = append(all, setting{"wal_compression", walCompression}) // full-page images are most of the WAL
	for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
		all = append(all, setting{name, o.Settings[name]})
	}
	all = append(all, fixedSettings(socketFolder)...)
	args := []string{"-D", cluster}
	for _, s := range all {
		args = append(args, "-c", s.name+"="+s.value)
	}
	return args
}

// bestWALCompression asks the server whether it was built with lz4, which costs
// the least time; pglz is always there.
func bestWALCompression(ctx context.Context, b binaries, acct *account, cluster string) string {
	_, err := run(ctx, acct, cluster, b.path("postgres"), "-D", cluster, "-c", "wal_compression=lz4", "-C", "wal_compression")
	if err != nil {
		return "pglz"
	}
	return "lz4"
}
