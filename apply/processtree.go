package apply

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// processTree are a command's process and those that came of it: its session, and their children in whatever session
// they are now. Who left the session and lost its parent before it was looked for is not among them: that is how
// daemons leave.
type processTree struct {
	group   int
	members map[Orphan]bool
}

func processTreeOf(pid int) *processTree {
	leader, _ := readStat(strconv.Itoa(pid))
	return &processTree{pid, map[Orphan]bool{{pid, leader.started}: true}}
}

// signal tells all of the family: its group, and those who left that. Who was told once is told again, although its
// parent ended since.
func (f *processTree) signal(sig syscall.Signal) {
	f.refresh()
	// The group, or a process, may be gone already, which is what is wanted.
	_ = syscall.Kill(-f.group, sig)
	for m := range f.members {
		if now, ok := readStat(strconv.Itoa(m.PID)); ok && now.started == m.Started {
			_ = syscall.Kill(m.PID, sig)
		}
	}
}

// refresh adds the processes that are there now.
func (f *processTree) refresh() {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	there, children := map[Orphan]bool{}, map[string][]Orphan{}
	leader, ok := readStat(strconv.Itoa(f.group))
	session := strconv.Itoa(f.group)
	if ok && !f.members[Orphan{f.group, leader.started}] { // the number is another's by now
		session = ""
	}
	for _, dir := range found {
		pid, notOne := strconv.Atoi(filepath.Base(dir))
		if p, ok := readStat(filepath.Base(dir)); ok && notOne == nil {
			there[Orphan{pid, p.started}] = true
			children[p.parent] = append(children[p.parent], Orphan{pid, p.started})
			if p.session == session {
				f.members[Orphan{pid, p.started}] = true
			}
		}
	}
	parents := slices.Collect(maps.Keys(f.members))
	for i := 0; i < len(parents); i++ {
		if !there[parents[i]] { // its number may be another's by now
			continue
		}
		for _, child := range children[strconv.Itoa(parents[i].PID)] {
			if !f.members[child] {
				f.members[child] = true
				parents = append(parents, child)
			}
		}
	}
}
