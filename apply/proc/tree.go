package proc

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Tree is a command's process and those that came of it: its session, and their children in whatever session they are
// now. Who left the session and lost its parent before it was looked for is not among them: that is how
// daemons leave.
type Tree struct {
	group   int
	members map[ID]bool
}

// TreeOf returns the tree of a process that leads a session. It is not for concurrent use.
func TreeOf(pid int) *Tree {
	return &Tree{pid, map[ID]bool{IDOf(pid): true}}
}

// Signal tells all of the tree: its group, and those who left that. Who was told once is told again, although its
// parent ended since.
func (t *Tree) Signal(sig syscall.Signal) {
	t.refresh()
	// The group, or a process, may be gone already, which is what is wanted.
	_ = syscall.Kill(-t.group, sig)
	for m := range t.members {
		if now, ok := Read(strconv.Itoa(m.PID)); ok && now.Started == m.Started {
			_ = syscall.Kill(m.PID, sig)
		}
	}
}

// Members returns the processes that are or were in the tree, in no order.
func (t *Tree) Members() []ID {
	t.refresh()
	return slices.Collect(maps.Keys(t.members))
}

// refresh adds the processes that are there now.
func (t *Tree) refresh() {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	there, children := map[ID]bool{}, map[string][]ID{}
	leader, ok := Read(strconv.Itoa(t.group))
	session := strconv.Itoa(t.group)
	if ok && !t.members[ID{t.group, leader.Started}] { // the number is another's by now
		session = ""
	}
	for _, dir := range found {
		pid, notOne := strconv.Atoi(filepath.Base(dir))
		if p, ok := Read(filepath.Base(dir)); ok && notOne == nil {
			there[ID{pid, p.Started}] = true
			children[p.Parent] = append(children[p.Parent], ID{pid, p.Started})
			if p.Session == session {
				t.members[ID{pid, p.Started}] = true
			}
		}
	}
	parents := slices.Collect(maps.Keys(t.members))
	for i := 0; i < len(parents); i++ {
		if !there[parents[i]] { // its number may be another's by now
			continue
		}
		for _, child := range children[strconv.Itoa(parents[i].PID)] {
			if !t.members[child] {
				t.members[child] = true
				parents = append(parents, child)
			}
		}
	}
}
