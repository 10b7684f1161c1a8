package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestOneBudget: all that a pull waits for is taken from the one time that it may wait, and ends with it. The list is
// that of the type: a new kind of wait needs a row.
func TestOneBudget(t *testing.T) {
	t.Parallel()
	_, endpoint := newMeter(t)
	scenes := waitScenes()
	for _, kind := range kindsOfWaits(t) {
		if (scenes[kind] == nil) == (notWaitedFor()[kind] == "") {
			t.Errorf("%q: say in waitScenes how a pull comes to wait for it, or in notWaitedFor why none does", kind)
		}
	}
	var all sync.WaitGroup
	for kind, scene := range scenes {
		fleet := strings.ReplaceAll(string(kind), " ", "-")
		h, end := scene(func(job string, files map[string]string) (*host, *host) {
			return pairOn(t, endpoint, fleet, job, files)
		})
		all.Go(func() {
			defer end()
			spentOn(h, kind)
		})
	}
	all.Wait()
}

// spentOn pulls, and checks that the pull waits for the kind in the time that it may wait in all.
func spentOn(h *host, kind state.WaitKind) {
	var heard []state.WaitKind
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		h.t.Error(err)
		return
	}
	const allowed = 2 * time.Second
	p := a.pull(h.t.Context(), Options{Wait: allowed, Waiting: func(w *lock.Wait) { heard = append(heard, w.Kind) }})
	err = p.do(h.t.Context())
	if p.out.Wait != nil {
		heard = append(heard, p.out.Wait.Kind)
	}
	heard = append(heard, h.overview().Statuses["web1"][state.Rollout].Kind)
	if !slices.Contains(heard, kind) {
		h.t.Errorf("%s: it waited for %v: %v", kind, heard, err)
	}
	if p.waits.spent == 0 || p.waits.spent > allowed+time.Minute { // a minute: the machine may be slow
		h.t.Errorf("%s: it waited %s of %s", kind, p.waits.spent, allowed)
	}
	if err := p.local.close(); err != nil {
		h.t.Error(err)
	}
	if err := a.Close(); err != nil {
		h.t.Error(err)
	}
}

// scene makes a fleet of two in which a host waits at its next pull. What it returns beside the host ends the wait.
type scene func(pair func(job string, files map[string]string) (web1, web2 *host)) (h *host, end func())

// waitScenes are all that a pull waits for.
func waitScenes() map[state.WaitKind]scene {
	rules := func(text string) map[string]string {
		return map[string]string{"pullet.yaml": "rollout: {" + text + "}\n"}
	}
	ready := func(text string) scene { return withRules(rules(text), nil) }
	after := func(text string, prepare func(web1, web2 *host)) scene { return withRules(rules(text), prepare) }
	step := func(line string) scene {
		return func(pair func(string, map[string]string) (*host, *host)) (*host, func()) {
			web1, _ := pair("steps:\n"+line, nil)
			return web1, func() {}
		}
	}
	switched := func(c state.Scope, w state.Switch) scene {
		return after("rollingRules: {global: 1}", func(web1, _ *host) {
			if err := web1.open().Switches.Set(web1.t.Context(), c, &w, nil, 0); err != nil {
				web1.t.Fatal(err)
			}
		})
	}
	fails := func(_, web2 *host) {
		web2.write(filepath.Join(web2.Fleet, "web2/root/etc/fails"), "")
		web2.exits(ExitError, "exit code 3")
	}
	return map[state.WaitKind]scene{
		state.WaitSlot:   after("maxFailures: 5", fails),
		state.WaitTotal:  after("maxFailures: 5, rollingRules: {global: 5, total: 1}", fails),
		state.WaitHalt:   after("maxFailures: 0", fails),
		state.WaitRole:   ready("canary: {target: web2}"),
		state.WaitSoak:   after("canary: {target: web2, soak: 1h}", func(_, web2 *host) { web2.exits(ExitOK, "") }),
		state.WaitLimit:  ready("rollingRules: {global: 0}"),
		state.WaitWindow: ready("windows: [{days: " + strings.ToLower(time.Now().Add(72*time.Hour).Format("Mon")) + ", from: '10:00', to: '10:01', zone: UTC}]"),
		state.WaitPause: after("rollingRules: {global: 1}", func(web1, _ *host) {
			if _, err := web1.open().Switches.Pause(web1.t.Context(), &state.Switch{At: time.Now()}, 0); err != nil {
				web1.t.Fatal(err)
			}
		}),
		state.WaitDisabled:   switched(state.GlobalScope(), state.Switch{At: time.Now()}),
		state.WaitOneVersion: switched(state.RoleScope("web"), state.Switch{Enabled: true, Version: "v1", At: time.Now()}),
		state.WaitBarrier:    step("- {name: meet, action: cmd.run, parameters: {cmd: 'true'}, runOptions: {sync: true}}\n"),
		state.WaitResult: step("- {name: token, action: cmd.run, parameters: {cmd: echo x}, runOptions: {target: {limit: 1, hosts: web2}}}\n" +
			"- {name: join, action: file.managed, parameters: {name: /etc/joined, content: '{{ (step `token`).StdOut }}'}}\n"),
		state.WaitCondition: step("- {name: a, action: file.managed, parameters: {name: /etc/a}, conditions: {when: {condition: \"len(services('db')) > 0\", retry: {interval: 1h, limit: 0}}}}\n"),
		state.WaitInRun:     step("- {name: a, action: service.wait, parameters: {name: db, timeout: 1h}}\n"),
		state.WaitSerialize: serialized,
		state.WaitOrphan:    outlived,
	}
}

// withRules is a host that waits under the rules of a fleet, behind what was prepared.
func withRules(files map[string]string, prepare func(web1, web2 *host)) scene {
	return func(pair func(string, map[string]string) (*host, *host)) (*host, func()) {
		web1, web2 := pair(job("one", "test ! -e etc/fails || exit 3"), files)
		if prepare != nil {
			prepare(web1, web2)
		}
		return web1, func() {}
	}
}

// serialized is a host that waits for another one at a serialized step.
func serialized(pair func(string, map[string]string) (*host, *host)) (*host, func()) {
	web1, web2 := pair(`steps:
- {name: join, action: cmd.run, parameters: {cmd: 'touch etc/begun; until test -e etc/go; do sleep 0.02; done'}, runOptions: {serialize: {count: 1}}}
`, map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	done := make(chan error)
	go func() {
		_, err := web2.with(Options{})
		done <- err
	}()
	web2.started("etc/begun")
	return web1, func() {
		web2.write(filepath.Join(web2.Fleet, "web2/root/etc/go"), "")
		if err := <-done; err != nil {
			web2.t.Error(err)
		}
	}
}

// outlived is a host on which a command of a pull that was killed still runs.
func outlived(pair func(string, map[string]string) (*host, *host)) (*host, func()) {
	web1, _ := pair(job("one", "true"), nil)
	other := &apply.Host{Root: web1.Root, Notes: filepath.Join(web1.Paths.State, "commands")}
	done := make(chan error)
	go func() {
		_, err := other.Run(web1.t.Context(), apply.Command{Args: apply.Shell("touch begun; until test -e go; do sleep 0.02; done")})
		done <- err
	}()
	web1.started("begun")
	return web1, func() {
		web1.write(filepath.Join(web1.Fleet, "web1/root/go"), "")
		if err := <-done; err != nil {
			web1.t.Error(err)
		}
	}
}

// notWaitedFor says of the other kinds why no pull spends time on them.
func notWaitedFor() map[state.WaitKind]string {
	const turn, atOnce, other = "it stands in the way of a turn, where slot does", "the pull ends at once", "how another host is"
	return map[state.WaitKind]string{
		state.WaitQueue: turn, state.WaitUnknown: turn, state.WaitStore: turn, state.WaitGrace: turn, state.WaitRecord: turn,
		state.WaitSealed:  "it is one wait with that for the result, where result does",
		state.WaitService: atOnce, state.WaitNode: atOnce, state.WaitNewer: atOnce, state.WaitFreeze: atOnce, state.WaitEtcd: atOnce, state.WaitRepository: atOnce, state.WaitRefused: atOnce,
		state.WaitMembers:  "it waits as for a result does, and several members of a datastore are processes: script datastore_turn",
		state.WaitReaction: "its places have a time of their own, with those of commands: script reaction_limits",
		state.WaitStale:    "it goes on with the last good commit", state.WaitLease: atOnce, state.WaitTime: "the time is over",
		state.WaitClone: atOnce, state.WaitName: atOnce, state.WaitDisk: atOnce,
		state.HolderAlive: other, state.HolderLost: other, state.HolderKeeps: other, state.HolderUnseen: other, state.HolderFailed: other, state.HolderParked: other, state.HolderOff: other,
	}
}

// kindsOfWaits are the constants of the type in its source.
func kindsOfWaits(t *testing.T) (out []state.WaitKind) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../state/wait.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "WaitKind" {
				out = append(out, state.WaitKind(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)))
			}
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("only %d kinds were found", len(out))
	}
	return out
}
