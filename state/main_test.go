package state

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
)

// TestMain lets the test binary be the other process of a test: it does what the variable says, reports "ready", and
// stays until its input ends; a store it closes then.
func TestMain(m *testing.M) {
	dir := os.Getenv("PULLET_TEST_DIR")
	switch os.Getenv("PULLET_TEST_ROLE") {
	case "":
		// Tests wait more than they compute: for leases and limits. The command line overrides this.
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	case "lock":
		other(func() (err error) { held, err = LockRun(dir, "theirs"); return err })
	case "store":
		other(func() error {
			s, err := Open(context.Background(), Config{Fleet: "f", Dir: dir})
			held = s
			if err == nil {
				_, err = s.Versions.Propose(context.Background(), Version{ID: "theirs"}, nil, 0)
			}
			return err
		})
	}
}

// held keeps what the other process holds: a file that nobody refers to is closed, and its lock gone with it.
var held any

// other is the body of the other process.
func other(do func() error) {
	if err := do(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if s, ok := held.(*Store); ok {
		if err := s.Close(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// process is another process of the node.
type process struct {
	*exec.Cmd
	in io.Closer
}

// startOther starts the test binary in a role and waits until it is ready.
func startOther(t *testing.T, role, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PULLET_TEST_ROLE="+role, "PULLET_TEST_DIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, in}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return p
}

// kill ends the process as kill -9 does, and waits for it.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// open opens the embedded store of a directory.
func open(t *testing.T, dir string) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Stretch(20*time.Second))
	defer cancel()
	s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
