package action_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestInTheWay: what a local user puts in the way of a step is a fault of that host, which does not halt the others.
func TestInTheWay(t *testing.T) {
	for _, c := range []struct{ put, path, action, params string }{
		{"dir", "home/f", "file.managed", `{name: /home/f, content: x}`},
		{"pipe", "home/f", "file.managed", `{name: /home/f, content: x}`},
		{"pipe", "home/f", "file.line", `{name: /home/f, line: x}`},
		{"huge", "home/f", "file.line", `{name: /home/f, line: x}`},
		{"zero", "home/f", "file.block", `{name: /home/f, content: x}`},
		{"pipe", "home/f", "file.directory", `{name: /home/f}`},
		{"pipe", "home/f", "file.content", `{name: /home/f}`},
		{"huge", "home/f", "file.content", `{name: /home/f}`},
		{"dir", "home/f", "file.symlink", `{name: /home/f, target: /etc}`},
		{"pipe", "home/f", "archive.extracted", `{name: /home/f, source: one.tar}`},
		{"pipe", "home/f", "archive.extracted", `{name: /srv, source: /home/f}`},
	} {
		t.Run(c.action+"/"+c.put, func(t *testing.T) {
			s := newScene(t, "d home 755")
			s.files["one.tar"] = tarball(packed{"f", "f", "one"})
			putInTheWay(t, c.put, s.path(c.path))
			if r := s.run(s.mustBind(c.action, c.params)); r.Outcome != apply.Failed || r.Fault != apply.HostFault {
				t.Errorf("%s, fault %q: %s", r.Outcome, r.Fault, r.Reason)
			}
		})
	}
}

func putInTheWay(t *testing.T, what, path string) {
	t.Helper()
	var err error
	switch what {
	case "dir":
		err = os.MkdirAll(filepath.Join(path, "below"), 0o755)
	case "pipe":
		err = syscall.Mkfifo(path, 0o600)
	case "huge":
		if err = os.WriteFile(path, nil, 0o600); err == nil {
			err = os.Truncate(path, 1<<30)
		}
	case "zero":
		err = os.WriteFile(path, []byte{0}, 0o600)
	default:
		err = fmt.Errorf("put %s", what)
	}
	if err != nil {
		t.Fatal(err)
	}
}
