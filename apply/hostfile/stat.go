package hostfile

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallStat is fstatat without following a link. The two packages have one layout for what the kernel answers.
func syscallStat(dir int, name string, st *syscall.Stat_t) error {
	return unix.Fstatat(dir, name, (*unix.Stat_t)(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW)
}
