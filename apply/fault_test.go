package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply/hostfile"
)

// TestFaultOf: each row of the table, with an error that the operating system or an action makes.
func TestFaultOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, notDir := os.Open(file + "/below")
	_, missing := os.Open(file + ".other")
	host := &Host{Root: "/"}
	ran, err := host.Run(context.Background(), Command{Args: Shell("kill -9 $$")})
	if err != nil || !ran.Killed {
		t.Fatalf("%+v, %v", ran, err)
	}
	_, noProgram := host.Run(context.Background(), Command{Args: []string{"no-such-program"}})
	for _, c := range []struct {
		err  error
		want Fault
	}{
		{fmt.Errorf("/srv: %w", &hostfile.LinkRefused{Path: "/srv"}), HostFault},
		{&hostfile.FileRefused{Path: "/srv"}, HostFault},
		{&fs.PathError{Op: "write", Path: "/srv", Err: syscall.ENOSPC}, HostFault},
		{errors.Join(errors.New("one"), syscall.EDQUOT), HostFault},
		{&fs.PathError{Op: "open", Path: "/srv", Err: syscall.EROFS}, HostFault},
		{syscall.ENOMEM, HostFault},
		{notDir, HostFault},
		{syscall.EACCES, UnknownFault}, // of no path
		{missing, UnknownFault},
		{&ExitError{"make", ran}, HostFault},
		{fmt.Errorf("%w (attempt 2)", &ExitError{"make", Output{ExitCode: 1}}), CommitFault},
		{noProgram, CommitFault},
		{&conditionError{errors.New("success: no")}, CommitFault},
		{context.DeadlineExceeded, UnknownFault},
	} {
		if got := FaultOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestReportFault: a run is the host's fault only where all that failed in it is.
func TestReportFault(t *testing.T) {
	for want, faults := range map[Fault][]Fault{
		"": nil, HostFault: {HostFault, HostFault}, CommitFault: {HostFault, UnknownFault, CommitFault}, UnknownFault: {HostFault, UnknownFault},
	} {
		r := &Report{Counts: map[Outcome]int{}}
		for _, f := range faults {
			r.add(&StepReport{Outcome: Failed, Fault: f})
			r.add(&StepReport{Outcome: Unmet})
		}
		if got := r.Fault(); got != want {
			t.Errorf("%v: %q, want %q", faults, got, want)
		}
	}
}

// TestFaultsPage holds the table of the documentation to the rules.
func TestFaultsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/rollouts.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, r := range FaultRules() {
		fmt.Fprintf(&table, "| %s | %s |\n", r.What, r.Fault)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/rollouts.md lacks this table:\n%s", table.String())
	}
}
