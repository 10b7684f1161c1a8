package apply

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/render"
)

// TestGroupClosesBesideHung: what a step of a group has open is closed where another action hangs that works on the same, and where the step's own hangs and returns
// when nobody waits for it any more.
func TestGroupClosesBesideHung(t *testing.T) {
	host := &Host{Root: t.TempDir(), Abandoned: &Abandoned{Grace: time.Millisecond}}
	s := &boundStep{id: "a/s", Step: &render.Step{Name: "s"}, job: &render.Job{Name: "a"}}
	begun, goOn, dropped := make(chan bool), make(chan bool), make(chan bool, 1)
	late := func(ctx context.Context) (*Prepared, error) {
		close(begun)
		<-goOn
		return &Prepared{Drop: func() { dropped <- true }}, nil
	}
	never := func(context.Context) (*Prepared, error) {
		t.Error("it was prepared beside what hangs")
		return nil, errors.New("unexpected")
	}
	group := func(ctx context.Context, prepare Prepare) {
		t.Helper()
		at, err := host.Entry("/x")
		if err != nil {
			t.Fatal(err)
		}
		r := &running{
			x: &execution{options: Options{Host: host}}, step: s, seen: &seen{at: at, prepare: prepare}, group: newGroup(),
		}
		var hung *HungError
		if _, err := r.grouped(ctx); !errors.As(err, &hung) {
			t.Fatalf("got %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	group(ctx, late)
	group(t.Context(), never)
	if n := openBelow(t, host.Root); n != 1 {
		t.Errorf("%d descriptors are open: only what hangs has one", n)
	}
	close(goOn)
	<-dropped
	for openBelow(t, host.Root) > 0 { // the test's own time bounds that
		time.Sleep(time.Millisecond)
	}
}

// openBelow is how many descriptors this process has below a directory.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) { // the directory that is read is closed by now
			n++
		}
	}
	return n
}
