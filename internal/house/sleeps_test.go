package house

import (
	"go/ast"
	"path"
	"path/filepath"
	"testing"
)

// harness are the tests of real processes, which may sleep: by the pattern of their files, each with what takes time.
var harness = map[string]string{
	"cmd/pullet/lab_test.go": "real hosts reboot",
}

// virtual are the packages whose tests run in virtual time as a whole.
var virtual = []string{"internal/etcdmodel", "lock/simulation"}

// sleepsLeft is how often other test files sleep in real time. The numbers may only fall.
var sleepsLeft = map[string]int{
	"apply/action/git/kill_test.go":       2, // it kills at random moments
	"internal/datastore/frozen_test.go":   1, // it kills at random moments
	"internal/datastore/rotation_test.go": 1, // it kills at random moments
	"lock/scale_bench_test.go":            1, // the time of a step
	"lock/scale_test.go":                  1, // the time of a step
	"state/minimum_test.go":               1, // one of two that race begins later each time
}

// TestTestsDoNotSleep: tests wait for conditions (internal/patience), events, or in virtual time. A sleep is too short
// on a busy machine, and too long on any other.
func TestTestsDoNotSleep(t *testing.T) {
	left, used, inBubbles := map[string]int{}, map[string]bool{}, 0
	eachFile(t, func(name, text string) {
		name = filepath.ToSlash(name)
		inReal, all := sleeps(parse(t, name, text).parsed)
		for _, dir := range virtual {
			if path.Dir(name) == dir {
				inReal = 0
			}
		}
		inBubbles += all - inReal
		if inReal == 0 {
			return
		}
		for pattern := range harness {
			if ok, err := path.Match(pattern, name); err != nil {
				t.Fatal(err)
			} else if ok {
				used[pattern] = true
				return
			}
		}
		left[name] = inReal
	}, "_test.go")
	for name, n := range left {
		if n > sleepsLeft[name] {
			t.Errorf("%s: %d calls of time.Sleep in real time; at most %d: use internal/patience or testing/synctest",
				name, n, sleepsLeft[name])
		}
	}
	for name, n := range sleepsLeft {
		if left[name] < n {
			t.Errorf("%s: only %d calls of time.Sleep: write that into sleepsLeft", name, left[name])
		}
	}
	for pattern, why := range harness {
		if !used[pattern] {
			t.Errorf("no test sleeps in %s (%s): remove it from harness", pattern, why)
		}
	}
	if inBubbles < 20 {
		t.Errorf("only %d sleeps in virtual time: this test does not find them", inBubbles)
	}
}

// sleeps counts the calls of time.Sleep in a file: outside of functions that run in virtual time, and all.
func sleeps(file *ast.File) (inReal, all int) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch name := callee(call); name {
			case "time.Sleep":
				inReal++
				all++
			case "synctest.Test", "inVirtualTime":
				for _, arg := range call.Args {
					ast.Inspect(arg, func(n ast.Node) bool {
						if call, ok := n.(*ast.CallExpr); ok && callee(call) == "time.Sleep" {
							all++
						}
						return true
					})
				}
				return false
			}
		}
		return true
	})
	return inReal, all
}

// callee returns the name of a called function, with its package; "" if it has none.
func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if pkg, ok := f.X.(*ast.Ident); ok {
			return pkg.Name + "." + f.Sel.Name
		}
	}
	return ""
}
