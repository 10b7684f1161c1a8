package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStart bounds what packages allocate before main: hosts and scripts start the program often, and each fetch starts
// it as the child of git. A package that is over the bound compiles or reads something that most starts do not need.
func TestStart(t *testing.T) {
	t.Parallel()
	const ours, theirs, all = 32 << 10, 256 << 10, 5 << 20 // bytes
	known := map[string]int{                               // each compiles what most starts do not need, and none can be told to wait with it
		"github.com/santhosh-tekuri/jsonschema/v6": 2 << 20, // the schemas of schemas, of all drafts
	}
	cmd := exec.Command("pullet", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, \d+ allocs$`)
	total, packages := 0, 0
	for _, m := range line.FindAllStringSubmatch(trace.String(), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		total += n
		limit := theirs
		if strings.HasPrefix(m[1], "github.com/pullet/pullet/") {
			packages++
			limit = ours
		}
		if n > max(limit, known[m[1]]) {
			t.Errorf("init of %s allocates %d bytes: at most %d", m[1], n, limit)
		}
	}
	if total > all {
		t.Errorf("all packages allocate %d bytes before main: at most %d", total, all)
	}
	if packages == 0 {
		t.Errorf("no package of ours is in the trace:\n%s", &trace)
	}
}
