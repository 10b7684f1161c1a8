package agent

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestForgottenInMidRun: a host in mid-run, whose fleet's record was restored and lacks its claim, ends its step, tells
// what it holds, and waits until an operator accepts the record. Nothing that it did is done again.
func TestForgottenInMidRun(t *testing.T) {
	t.Parallel()
	const slow = "steps:\n- {name: slow, action: cmd.run, parameters: {cmd: 'touch etc/begun; until test -e etc/go; do sleep 0.02; done; echo x >> etc/ended; "
	for name, c := range map[string]struct {
		steps string
		exit  int
		after string // what is there behind the pull that goes on
	}{
		"a step follows": {slow + "true'}}\n- {name: next, action: file.managed, parameters: {name: /etc/next, content: x}}\n", ExitWaiting, "x\n"},
		"the last step":  {slow + "true'}}\n", ExitWaiting, "x\n"},
		"a failure":      {slow + "test -e etc/fixed'}}\n", ExitError, "x\nx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web1, _, m := pair(t, job("one", "true"), nil)
			web1.exits(ExitOK, "")
			web1.commit(c.steps)
			done := make(chan *Outcome)
			go func() {
				out, err := web1.with(Options{})
				if w, waits := errors.AsType[*lock.Wait](err); waits && err.Error() == "the fleet does not know of the failure: "+w.Error() {
					out.Wait = w
				} else if err != nil {
					t.Error(err)
				}
				done <- out
			}()
			web1.started("etc/begun")
			s := state.Over(m.store.Client, "f", nil)
			forget(t, s, "web1")
			web1.write("f/web1/root/etc/go", "")
			out := <-done
			if out.ExitCode() != c.exit || out.Wait == nil || out.Wait.Kind != state.WaitStore ||
				!strings.HasPrefix(out.Wait.Error(), "waiting for the fleet's record (not accepted): web1 says: the fleet's record in etcd was restored or replaced: ") {
				t.Errorf("%s", saidBy(out, nil))
			}
			o := web1.overview()
			if web1.known().Held == nil || len(o.Slots["web"]) != 1 || o.Doubting["web1"].Running == "" {
				t.Errorf("%+v %+v %+v", web1.known(), o.Slots, o.Doubting)
			}
			if err := s.Doubts.Accept(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
			web1.write("f/web1/root/etc/fixed", "")
			web1.exits(ExitOK, "")
			if o := web1.overview(); len(o.Slots["web"]) != 0 || o.Running["web1"] != web1.head() || web1.file("etc/ended") != c.after {
				t.Errorf("%+v %q", o.Slots, web1.file("etc/ended"))
			}
		})
	}
}

// forget takes the claims of a node from a record, as one that was restored lacks them.
func forget(t *testing.T, s *state.Store, node string) {
	t.Helper()
	_, err := s.Client.Txn(t.Context()).Then(clientv3.OpDelete(s.Rollouts.SlotPrefix(""), clientv3.WithPrefix()),
		clientv3.OpDelete(s.Rollouts.TotalPrefix(), clientv3.WithPrefix()), clientv3.OpDelete(s.Doubts.ClaimedKey(node))).Commit()
	if err != nil {
		t.Fatal(err)
	}
}
