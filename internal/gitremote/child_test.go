package gitremote

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// read has a child read a pack, and returns the most memory that
// a child of this process ever had, and its error.
func read(t *testing.T, pack []byte, l Limits) (peak int64, err error) {
	t.Helper()
	in, err := newIncoming(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := in.fill(bytes.NewReader(pack), l.Whole()); err != nil {
		return 0, err
	}
	err = Client{Limits: l}.makeIndex(t.Context(), in)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Maxrss << 10, err
}

// small is enough for what the tests send and far less than the attacks want.
var small = Limits{Memory: 256 << 20, Disk: 32 << 20, Objects: 100_000, Time: 20 * time.Second}

func TestPackIsRead(t *testing.T) {
	p := newPack(4)
	base := p.object(plumbing.BlobObject, []byte("0123456789"))
	middle := p.delta(base, repeat(10, 2))
	p.delta(middle, repeat(20, 3))
	p.named(plumbing.ComputeHash(plumbing.BlobObject, []byte("0123456789")), repeat(10, 5))
	if _, err := read(t, p.end(), small); err != nil {
		t.Fatal(err)
	}
}

// Each pack is an attack. None may take memory that is near what it is after.
func TestHostilePacks(t *testing.T) {
	const mega = 1 << 20
	zeros := make([]byte, mega)
	for name, c := range map[string]struct {
		pack func() []byte
		want string
	}{
		"announces all objects there can be": {
			func() []byte { return newPack(4294967295).end() },
			"a pack of 4294967295 objects: more than the limit of 100000; if the repository really needs it, raise agent.git.objects",
		},
		"announces more than fit": {
			func() []byte { return newPack(90_000).end() },
			"the server sent a bad pack: its header says 90000 objects, which 32 bytes cannot hold",
		},
		"delta bomb": {
			func() []byte {
				p := newPack(3)
				base := p.object(plumbing.BlobObject, zeros)
				p.delta(p.delta(base, repeat(mega, 16)), repeat(16*mega-1, 64))
				return p.end()
			},
			"an object of 1073741760 bytes that is stored as a delta: more than the limit of 32 MiB, an eighth of the memory; if the repository really needs it, raise agent.git.memory",
		},
		"many deltas": {
			func() []byte {
				p := newPack(5001)
				base := p.object(plumbing.BlobObject, zeros)
				for range 5000 {
					p.delta(base, repeat(mega, 16))
				}
				return p.end()
			},
			"inflates: more than the limit of",
		},
		"says less than it inflates to": {
			func() []byte {
				p := newPack(1)
				p.header(plumbing.BlobObject, 10)
				p.deflate(zeros)
				return p.end()
			},
			"the server sent a bad pack: object 1 of 1, at byte 12: it is not as large as it says (10 bytes)",
		},
		"says more than it inflates to": {
			func() []byte {
				p := newPack(1)
				p.header(plumbing.BlobObject, 1<<40)
				p.deflate(zeros)
				return p.end()
			},
			"inflates: more than the limit of",
		},
		"chain without end": {
			func() []byte {
				p := newPack(6001)
				at := p.object(plumbing.BlobObject, []byte("0123456789"))
				for range 6000 {
					at = p.delta(at, repeat(10, 1))
				}
				return p.end()
			},
			"a chain of deltas: more than the limit of 4096",
		},
		"thin": {
			func() []byte {
				p := newPack(1)
				p.named(plumbing.NewHash("0123456789012345678901234567890123456789"), repeat(10, 1))
				return p.end()
			},
			"the server sent a bad pack: 1 deltas are based on objects that are not in it",
		},
		"based on itself": {
			func() []byte {
				p := newPack(1)
				p.delta(p.Len(), repeat(10, 1))
				return p.end()
			},
			"the server sent a bad pack: object 1 of 1, at byte 12: its base is nowhere",
		},
		"delta that does not fit": {
			func() []byte {
				p := newPack(2)
				p.delta(p.object(plumbing.BlobObject, []byte("0123456789")), repeat(11, 1))
				return p.end()
			},
			"its delta does not fit its base",
		},
		"twice the same": {
			func() []byte {
				p := newPack(2)
				p.object(plumbing.BlobObject, []byte("a"))
				p.object(plumbing.BlobObject, []byte("a"))
				return p.end()
			},
			"the server sent a bad pack: it has the object 2e65efe2a145dda7ee51d1741299f848e5bf752e twice",
		},
		"no such kind": {
			func() []byte {
				p := newPack(1)
				p.object(5, []byte("a"))
				return p.end()
			},
			"object 1 of 1, at byte 12: there is no such kind of object",
		},
		"something behind": {
			func() []byte {
				p := newPack(1)
				p.object(plumbing.BlobObject, []byte("a"))
				p.WriteString("more")
				return p.end()
			},
			"the server sent a bad pack: something follows its last object",
		},
		"wrong checksum": {
			func() []byte { return append(newPack(0).Bytes(), make([]byte, 20)...) },
			"the server sent a bad pack: its checksum does not match: it is damaged or cut short",
		},
		"other version": {
			func() []byte { return []byte("PACK\x00\x00\x00\x03\x00\x00\x00\x01aaaaaaaaaaaaaaaaaaaa") },
			"the server sent a bad pack: it has version 3; pullet reads version 2",
		},
		"nothing": {func() []byte { return nil }, "the server sent a bad pack: it is cut short"},
		"text":    {func() []byte { return []byte("<html>not found</html>") }, "the server sent a bad pack: it does not begin as packs do"},
	} {
		t.Run(name, func(t *testing.T) {
			peak, err := read(t, c.pack(), small)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if peak > small.Memory {
				t.Errorf("a child had %d MiB", peak>>20)
			}
		})
	}
}

// What the bounds of the reader let through, the kernel ends: objects that each
// may be there and together are more than the process may have.
func TestMemoryHolds(t *testing.T) {
	tier.Long(t, "fills a quarter of a gigabyte")
	if raced {
		t.Skip("the race detector's own memory is over the limit; this runs without it, in the quick part")
	}
	const mega = 1 << 20
	p := newPack(34)
	last := p.object(plumbing.BlobObject, make([]byte, mega))
	last = p.delta(last, repeat(mega, 30))
	for range 16 { // the second delta on each keeps it in memory
		next := p.delta(last, copies(30*mega, mega, 30))
		p.delta(last, copies(30*mega, mega, 30))
		last = next
	}
	peak, err := read(t, p.end(), small)
	limit, ok := errors.AsType[*LimitError](err)
	if !ok || limit.Setting != "memory" || peak > small.Memory+overhead {
		t.Errorf("%v, %d MiB", err, peak>>20)
	}
}

// A child has nothing that it does not need.
func TestChildIsSeparated(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	lacks, err := Isolation(t.Context())
	if err != nil || len(lacks) > 0 {
		t.Fatalf("%v, %v", lacks, err)
	}
	c := child{task: task{Do: taskIndex, Limits: small.Whole()}}
	r, w, err := os.Pipe() // a pack that does not end: the child waits
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c.file = r
	p, err := c.start(t.Context(), []byte(`{"Do":"index","Limits":{"Memory":268435456,"Time":20000000000,"Objects":10}}`), locks(nil)[0])
	if err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nCapEff:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n", "\nGroups:\t \n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	if !strings.Contains(string(status), "NoNewPrivs:\t1") || strings.Contains(string(status), "Uid:\t0") {
		t.Errorf("%s", status)
	}
	for _, space := range []string{"net", "pid", "ipc"} {
		own, err := os.Readlink("/proc/self/ns/" + space)
		if err != nil {
			t.Fatal(err)
		}
		if its, err := os.Readlink(proc + "/ns/" + space); err != nil || its == own {
			t.Errorf("%s: %s, %v", space, its, err)
		}
	}
	w.Close()
	r.Close()
	if _, err := p.wait(t.Context(), c); err == nil {
		t.Error("an empty pack is none")
	}
}

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	in, err := newIncoming(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.fill(io.LimitReader(neverEnding{}, 1<<20), small.Whole()); err == nil {
		t.Fatal("no error")
	}
	if err := Collect(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(in.dir); err != nil {
		t.Fatalf("a fetch goes on there: %v", err)
	}
	in.lock.Close() // as when the process is killed
	if err := Collect(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(in.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
}

// TestManyAtOnce: fetches that begin at the same time do not remove each other's directories.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				in, err := newIncoming(dir)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(in.dir); err != nil {
					t.Error(err)
				}
				if err := in.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// neverEnding is a pack with an object that does not end.
type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) {
	n := copy(p, "PACK\x00\x00\x00\x02\x00\x00\x00\x01")
	return max(n, len(p)), nil
}

// TestChildDiesWithItsParent: a process that is killed leaves no child behind.
func TestChildDiesWithItsParent(t *testing.T) {
	if name := os.Getenv("PULLET_TEST_SCRATCH"); name != "" {
		r, _, err := os.Pipe() // a pack that never comes: the child waits
		if err != nil {
			t.Fatal(err)
		}
		c := child{task: task{Do: taskIndex, Limits: small.Whole()}, file: r}
		p, err := c.start(t.Context(), []byte(`{"Do":"index","Limits":{"Memory":268435456,"Time":20000000000,"Objects":10}}`), locks(nil)[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strconv.Itoa(p.cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	note := filepath.Join(t.TempDir(), "pid")
	parent := exec.Command("/proc/self/exe", "-test.run", "^TestChildDiesWithItsParent$")
	parent.Env = append(os.Environ(), "PULLET_TEST_SCRATCH="+note)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	patience.Until(t, "the child runs", func() bool {
		text, _ = os.ReadFile(note)
		return len(text) > 0
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the child ends", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}
