package main

import "golang.org/x/sys/unix"

// hideMemory keeps the memory of this process, which holds credentials and what sensitive steps read, out of core
// dumps, and from other processes of the same user. Programs that it starts are not concerned. A kernel that refuses
// leaves it as it was: dumps are a setting of the host as well.
func hideMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
