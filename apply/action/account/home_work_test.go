package account_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// failingTool is an account tool that runs the real one until the call with the number in $FAIL.
const failingTool = `#!/bin/sh
real=/usr/sbin/$(basename "$0")
n=$(($(cat COUNT) + 1)); echo $n >COUNT
[ $n -lt FAIL ] && exec $real "$@"
[ $n -gt FAIL ] && [ HOW != killed ] && exec $real "$@"
[ $n -gt FAIL ] && exit 1
case HOW in
before) echo refused >&2; exit 1;;
after|killed) # the account is written, the home is not
	for a; do shift; [ "$a" = -m ] || set -- "$@" "$a"; done
	$real "$@"; echo no room >&2; exit 12;;
esac
`

// homeResult is what became of an account: its entries, and what its homes hold.
func homeResult(s *actiontest.Scene) string {
	out := s.Read("etc/passwd") + s.Read("etc/group") + s.Read("etc/shadow")
	for _, path := range slices.Sorted(maps.Keys(actiontest.Tree(s.T, s.Root))) {
		rel, err := filepath.Rel(s.Root, path)
		if err == nil && (strings.HasPrefix(rel, "home") || strings.HasPrefix(rel, "srv") || strings.HasPrefix(rel, "etc/.pullet")) {
			out += rel + "\n"
		}
	}
	return out
}

// TestHalfDoneAccounts has each call of an account tool fail, before and after it wrote the account, with and without
// the chance to put it back. The next run makes of the host what an undisturbed run makes of it: no failure is
// forgotten.
func TestHalfDoneAccounts(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	host := actiontest.People("f home/alice/thesis 600 years", "f etc/skel/.rc 644 x", "f etc/login.defs 644 ")
	for i, params := range []string{
		"{name: alice, home: /srv/alice, moveHome: true, groups: [users], shell: /bin/bash}",
		"{name: alice, home: /srv/alice, comment: x}",
		"{name: alice, uid: 1600, home: /srv/deep/alice, moveHome: true, createHome: false}",
		"{name: bob, home: /srv/bob/, password: '" + actiontest.Hash + "'}",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			halfDone(t, host, params)
		})
	}
}

func halfDone(t *testing.T, host []string, params string) {
	plain := actiontest.New(t, host...)
	plain.MustRun("user.present", params)
	want := homeResult(plain)
	for _, how := range []string{"before", "after", "killed"} {
		for call := 1; call <= 3; call++ {
			s := actiontest.New(t, host...)
			p := s.MustBind("user.present", params)
			first, err := p.Run(context.Background(), withFailingTools(s, how, call))
			if err != nil {
				t.Fatal(err)
			}
			if r := first.Steps[0]; r.Outcome != apply.Failed {
				continue // it needs fewer calls
			}
			if r := s.Run(p); r.Outcome == apply.Failed {
				t.Errorf("%s, call %d fails (%s): the next run: %s", params, call, how, r.Reason)
			}
			if have := homeResult(s); have != want {
				t.Errorf("%s, call %d fails (%s): then\n%s\nwant\n%s", params, call, how, have, want)
			}
			if r := s.Plan(p); r.Outcome != apply.OK {
				t.Errorf("%s, call %d fails (%s): a plan afterwards: %s", params, call, how, r.Summary)
			}
		}
	}
}

// withFailingTools are options with account tools of which one call fails.
func withFailingTools(s *actiontest.Scene, how string, call int) apply.Options {
	s.T.Helper()
	bin := s.T.TempDir()
	count := filepath.Join(bin, "count")
	script := strings.NewReplacer("COUNT", count, "FAIL", fmt.Sprint(call), "HOW", how).Replace(failingTool)
	for _, name := range []string{"useradd", "usermod", "chpasswd"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			s.T.Fatal(err)
		}
	}
	if err := os.WriteFile(count, []byte("0"), 0o644); err != nil {
		s.T.Fatal(err)
	}
	o := s.Options()
	o.Host.Env = map[string]string{"PATH": bin + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	return o
}
