package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stormPatch is a change of one place of a source file, for one build: the compiler is given another file in its place (go build -overlay). The product
// itself has no switch for it.
type stormPatch struct{ file, old, new string }

// apply is the text of the file with the patch. One whose place is not there any more is an error: it would test nothing.
func (p stormPatch) apply(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		t.Errorf("%s has %q %d times: the patch has to be written anew", p.file, p.old, n)
	}
	return strings.Replace(string(text), p.old, p.new, 1)
}

// buildPullet builds pullet with patches, and returns the program.
func buildPullet(t *testing.T, dir string, patches ...stormPatch) string {
	t.Helper()
	replace := map[string]string{}
	for i, p := range patches {
		to := filepath.Join(dir, fmt.Sprintf("patch%d.go", i))
		if err := os.WriteFile(to, []byte(p.apply(t)), 0o644); err != nil {
			t.Fatal(err)
		}
		abs, err := filepath.Abs(p.file)
		if err != nil {
			t.Fatal(err)
		}
		replace[abs] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "pullet")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// stormMutants are faults that the storm has to see, each in a pullet of its own.
var stormMutants = []struct {
	promise string // that is broken first
	patch   stormPatch
}{
	{"limit", stormPatch{"../../lock/decide.go", "+v.lost() >= v.Limit", "+v.lost() > v.Limit"}},
	{"total", stormPatch{"../../lock/decide.go", "if v.Total == 0 {", "if true {"}},
	{"dependencies", stormPatch{"../../lock/decide.go", "for _, d := range v.Depends {", "for _, d := range v.Depends[:0] {"}},
	{"halt", stormPatch{"../../lock/decide.go", "return g.State == state.Halted && !counted(g, v.Node)", "return false"}},
	{"pause", stormPatch{"../../lock/pool.go", "if len(all.set) == 0 || r.view.Switch != nil {", "if len(all.set) == 0 || r.view.Switch != nil || all.what == state.PauseScope {"}},
	{"serialize", stormPatch{"../../lock/serialize.go", `step: step.ID, gate: "step-" + hash, limit: limit,`, `step: step.ID, gate: "step-" + hash, limit: func(int) int { return 9 },`}},
	{"barrier", stormPatch{"../../lock/barrier.go", "if got.Responses[0].GetResponseRange().Count > 0 {\n\t\treturn nil, 0, nil", "if true {\n\t\treturn nil, 0, nil"}},
	{"elections", stormPatch{"../../lock/election.go", `func (c *Candidate) Chosen() bool { return c.place != "" }`, `func (c *Candidate) Chosen() bool { return true }`}},
}

// TestStormPatches: what the mutants change is there.
func TestStormPatches(t *testing.T) {
	for _, p := range append(jumpingClock(t), mutantPatches()...) {
		p.apply(t)
	}
}

func mutantPatches() (out []stormPatch) {
	for _, m := range stormMutants {
		out = append(out, m.patch)
	}
	return out
}

// TestStormMutants: a storm sees a pullet that breaks a promise. It lasts until it does.
func TestStormMutants(t *testing.T) {
	last, err := time.ParseDuration(os.Getenv("PULLET_STORM"))
	if err != nil {
		t.Skip("it takes minutes: scripts/storm mutants")
	}
	for _, m := range stormMutants {
		t.Run(m.promise, func(t *testing.T) {
			dir := t.TempDir()
			program := buildPullet(t, dir, m.patch)
			s := newStorm(t, stormSeed(t), stormKind{members: 1, repos: 1, hosts: 6, onLost: "hold", last: last, pullet: program})
			if m.promise == "total" { // the other limits keep within any more than that
				s.rules.total, s.rules.depends = 1, false
				s.push(s.rules, false)
			}
			s.start()
			if found := s.untilBroken(m.promise); found == "" {
				t.Errorf("seed %d: in %s nobody saw it", s.seed, last)
			} else {
				t.Log(found)
			}
			s.stop()
		})
	}
}

// untilBroken pushes versions and pauses, with nothing else that is wrong, until the log shows a promise to be broken.
func (s *storm) untilBroken(promise string) string {
	x := stormRand(s.seed, 1)
	lane := stormRand(s.seed, 2)
	for end := time.Now().Add(s.kind.last); time.Now().Before(end); {
		text, err := os.ReadFile(s.log.path)
		if err != nil {
			s.t.Fatal(err)
		}
		whole := string(text[:strings.LastIndexByte(string(text), '\n')+1]) // a step may be writing
		l, err := readStorm(whole)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, b := range judgeStorm(l).breaches {
			if b.promise == promise {
				return b.text
			}
		}
		s.pushes(x)
		if lane.IntN(3) == 0 {
			s.pauses(lane)
		}
	}
	return ""
}

// jumpingClock makes every process of pullet on a host add to the time of day what a file says, in seconds. Its name is in PULLET_TEST_CLOCK.
func jumpingClock(t *testing.T) []stormPatch {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, now := filepath.Join(strings.TrimSpace(string(root)), "src/time"), "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return []stormPatch{
		{filepath.Join(dir, "time.go"), now, now + "\tsec += jumped()\n"},
		{filepath.Join(dir, "sys_unix.go"), "func open(name string)", stormClock + "func open(name string)"},
	}
}

// stormClock stands in package time, which can read a file but imports nothing that does.
const stormClock = `
func jumped() (by int64) {
	name, found := syscall.Getenv("PULLET_TEST_CLOCK")
	if !found {
		return 0
	}
	fd, err := open(name)
	if err != nil {
		return 0
	}
	defer closefd(fd)
	var text [24]byte
	n, _ := read(fd, text[:])
	sign := int64(1)
	for _, c := range text[:n] {
		switch {
		case c == '-':
			sign = -1
		case '0' <= c && c <= '9':
			by = 10*by + int64(c-'0')
		}
	}
	return sign * by
}

`
