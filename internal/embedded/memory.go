package embedded

import "golang.org/x/sys/unix"

// memoryFolder is Linux's file system in memory.
const memoryFolder = "/dev/shm"

// MemoryFolder returns a parent for a TempStore in memory if at least so many
// bytes are free there, else "", the default place. It's for servers whose data
// are worth nothing; containers often have 64 MB there, other systems none.
func MemoryFolder(needBytes uint64) string {
	var stat unix.Statfs_t
	if err := unix.Statfs(memoryFolder, &stat); err != nil || stat.Bavail*uint64(stat.Bsize) < needBytes {
		return ""
	}
	return memoryFolder
}
