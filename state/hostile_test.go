package state

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

// example is a key of a kind, below the fleet's prefix.
func (k kind) example() string {
	return strings.NewReplacer("NODE", "web1", "GROUP", "web", "VERSION", "v1", "ROLLOUT", "v1", "SERVICE", "db", "CATEGORY", Rollout, "STATE", Failed,
		"WORD", "c1", "HASH", StepHash("x"), "DIGEST", strings.Repeat("a", 64), "PLACE", "0", "SEQ", "0000000001", "CHUNK", "000", "TICKET", strings.Repeat("0", 18)+"1-web1",
	).Replace(k.shape)
}

// hostile are values that somebody may write into etcd.
func hostile() map[string]string {
	return map[string]string{
		"empty": "", "cut off": `{"`, "null": "null", "a list": "[]", "a text": `"x"`, "a number": "1e999", "an object": "{}", "no text": "\xff\xfe\x00",
		"deep": strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), "deep lists": strings.Repeat("[", 500_000), "huge": strings.Repeat("x", maxBig-1000),
		"wrong types":       `{"name":1,"node":[],"state":{},"time":"x","commits":"x","addresses":7,"names":null}`,
		"control":           `{"name":"\u001b[2J","node":"web1\n","state":"open\u0000","version":"v1\u202e","by":"\u001b]0;x\u0007","address":"10.0.0.1\n- evil"}`,
		"absurd":            `{"name":"web1","node":"web1","version":"v1","seq":-1,"epoch":99999999999,"port":-1,"max":-5,"since":"9999-12-31T23:59:59Z","time":"0300-01-01T00:00:00Z","at":"9999-01-01T00:00:00Z"}`,
		"names twice":       `{"node":"web2","node":"\u001b","NODE":"/../x","state":"open","state":7}`,
		"a path":            `{"node":"../../current_version","name":"../x","blob":"../../x"}`,
		"a negative number": "-100000000",
		"a roster":          "{\"size\":1000000000,\"roles\":null}\n\x1b\n../x\n",
	}
}

// strangeKeys are keys that pullet never writes.
func strangeKeys() []string {
	return []string{
		"status/x", "status/rollout/failed/web1/more", "status/nothing/failed/web1", "status/rollout/odd/web1", "node/", "node/a b", "node/\x1b[31m", "node/w\u202eeb", "facts/a/b", "service/db1",
		"service/web1/..", "slot/web/x", "slot/web/007", "slot/web/-1", "slot/web/99999999999999999999", "slot/x", "config_state/enable/host", "config_state/odd", "history/1",
		"command_given/a b", "command_given/", "command_result/c1/\xff", "rollout/v1/gate/a b", "rollout/v1/roster", "run/v1", "run/v1/x/place/0", "blob/x/y", "extension/x", "extension/x/000", "unknown", "", "/",
		"total/x", "semaphore/x/0", "running_version/web1", "running_version/a b/web1", "rollout/v1/queue/web/x", strings.Repeat("node/", 2000),
	}
}

// plant writes a value below every kind of key, and below keys that pullet does not know.
func plant(t *testing.T, s *Store, value string, strange bool) {
	t.Helper()
	etcd, err := raw(s)
	must(t, err)
	defer etcd.Close()
	var keys []string
	for _, k := range kinds {
		keys = append(keys, k.example())
	}
	if strange {
		keys = append(keys, strangeKeys()...)
	}
	for _, key := range keys {
		_, err := etcd.Put(ctx, s.prefix+key, value)
		must(t, err)
	}
}

// TestHostileRecords: whatever stands in the fleet's record, nothing that reads it fails or ends the process, and every
// value that is read and cannot be is named, with what helps.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for name, value := range hostile() {
		t.Run(name, func(t *testing.T) {
			etcd, err := raw(s)
			must(t, err)
			defer etcd.Close()
			_, err = etcd.Delete(ctx, s.prefix, clientv3.WithPrefix())
			must(t, err)
			plant(t, s, value, len(value) < 10_000)
			readAllOf(t, s)
			named := map[string]bool{}
			for _, bad := range s.BadRecords() {
				named[bad.raw] = true
				if text := bad.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x202e }) || len(text) > 2000 || bad.Clear == "" {
					t.Errorf("%q", text)
				}
			}
			all, err := s.Scan(ctx, 10_000)
			must(t, err)
			for _, bad := range all {
				named[bad.raw] = true
			}
			for _, k := range kinds {
				kv := &mvccpb.KeyValue{Key: []byte(s.prefix + k.example()), Value: []byte(value)}
				key, err := s.Key(kv)
				if err != nil {
					t.Errorf("%s: %v", k.shape, err)
				} else if k.examine != nil && k.examine(key, kv.Value) != nil && !named[string(kv.Key)] {
					t.Errorf("%s is not named", k.shape)
				}
			}
		})
	}
}

// readAllOf reads the fleet's record in every way.
func readAllOf(t *testing.T, s *Store) {
	t.Helper()
	o, err := s.Views.Fleet(ctx, true)
	must(t, err)
	_, err = s.Views.Templates(ctx)
	must(t, err)
	_, err = s.Views.Locks(ctx, o)
	must(t, err)
	o.Current = &Version{ID: "v1"}
	must(t, s.Views.gates(ctx, o))
	_, err = s.Views.Locks(ctx, o)
	must(t, err)
	history, err := s.Versions.History(ctx)
	must(t, err)
	_, err = s.Versions.Endings(ctx, append(history, Version{ID: "v1"}))
	must(t, err)
	_, err = s.Switches.List(ctx)
	must(t, err)
	_, err = s.Services.Instances(ctx, "db")
	must(t, err)
	_, err = s.Rosters.Members(ctx, nil)
	must(t, err)
	_, _, err = s.Commands.List(ctx)
	must(t, err)
	_, err = pendingCommands(s, "web1")
	must(t, err)
	_, err = s.Views.Blockers(ctx, []string{"web1"})
	must(t, err)
	_, err = s.Statuses.Get(ctx, "web1", Rollout, Failed)
	must(t, err)
	_, _, err = s.Rollouts.Gate(ctx, "v1", "web")
	must(t, err)
	_, err = s.Rollouts.CanariesDone(ctx, &Version{ID: "v1"}, "web")
	must(t, err)
	_, err = s.Results.named(ctx)
	must(t, err)
	_, err = s.Extensions.List(ctx)
	must(t, err)
	_, err = s.Bells.Announced(ctx, []string{"c1"})
	must(t, err)
	must(t, s.Statuses.LinkLog(ctx, "web1", "r1", "x"), s.Commands.Forget(ctx, time.Now()), s.Services.SweepDNS(ctx, "db", "example.org"))
	if _, _, err := s.Versions.Current(ctx); unlessBad(err) != nil {
		t.Error(err)
	}
	_, err = s.Doubts.Guard(ctx, "web1", Origin{})
	must(t, err)
}

// TestUnreadableRestricts: what cannot be read counts as what restricts most.
func TestUnreadableRestricts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	plant(t, s, `{"`, true)
	set, err := s.Switches.List(ctx)
	must(t, err)
	for _, scope := range []string{"host web1", "role web", "global", "pause"} {
		if w, ok := set[scope]; !ok || w.Enabled {
			t.Errorf("%s: %+v", scope, w)
		}
	}
	if g, rev, err := s.Rollouts.Gate(ctx, "v1", "web"); g.State != Halted || rev == 0 || err != nil || !strings.Contains(g.Reason, "rollout/v1/gate/web cannot be read") {
		t.Errorf("%+v %d %v", g, rev, err)
	}
	o, err := s.Views.Fleet(ctx, false)
	must(t, err)
	if c := o.Slots["web"]["0"]; c.Unread == nil {
		t.Errorf("%+v", o.Slots)
	}
	p, err := s.Views.Blockers(ctx, []string{"web1"})
	if n := p.Nodes["web1"]; err != nil || !n.Known || !n.Alive {
		t.Errorf("%+v %v", n, err)
	}
	if _, _, err := s.Versions.Current(ctx); unlessBad(err) != nil || err == nil {
		t.Error(err)
	}
	all, _, err := s.Commands.List(ctx)
	if err != nil || len(all) != 0 {
		t.Errorf("%+v %v", all, err)
	}
}

// TestRegisterRepairs: a node writes its own records anew where they cannot be read, and is one node still.
func TestRegisterRepairs(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	plant(t, s, `{"`, false)
	p, err := s.Presences.Register(ctx, Node{Name: "web1", Running: "v1", LastSeen: time.Now()}, Alive{Owner: "me"}, map[string]any{"os": "linux"}, time.Minute)
	if err != nil || p.Node.Running != "v1" {
		t.Fatalf("%+v %v", p, err)
	}
	o, err := s.Views.Fleet(ctx, true)
	if err != nil || o.Facts["web1"]["os"] != "linux" || o.Nodes["web1"].Running != "v1" {
		t.Errorf("%+v %v", o, err)
	}
}

// TestForgedFacts: facts that somebody else wrote in the name of a node are data within their character sets, and last
// until the node's next pull.
func TestForgedFacts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register := func() {
		_, err := s.Presences.Register(ctx, Node{Name: "web1", LastSeen: time.Now()}, Alive{Owner: "me"}, map[string]any{"os": "linux"}, time.Minute)
		must(t, err)
	}
	etcd, err := raw(s)
	must(t, err)
	defer etcd.Close()
	register()
	for value, want := range map[string]any{`{"os":"forged: {{ x }}"}`: "forged: {{ x }}", `{"os":"a\n- evil"}`: nil, `{"os":"\u001b[2J"}`: nil, `["os"]`: nil} {
		_, err := etcd.Put(ctx, s.key("facts", "web1"), value)
		must(t, err)
		view, err := s.Views.Templates(ctx)
		if must(t, err); view.Facts["web1"]["os"] != want {
			t.Errorf("%s: %v", value, view.Facts["web1"])
		}
		if bad := s.BadRecords(); (len(bad) > 0) != (want == nil) {
			t.Errorf("%s: %v", value, bad)
		}
	}
	register()
	if view, err := s.Views.Templates(ctx); err != nil || view.Facts["web1"]["os"] != "linux" {
		t.Errorf("%v %v", view.Facts, err)
	}
}

// TestRemove: a record that cannot be read goes by the key that its error shows, and none that can.
func TestRemove(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	etcd, err := raw(s)
	must(t, err)
	defer etcd.Close()
	keys := append(strangeKeys()[:20], "facts/db1", "slot/web/3")
	for _, key := range keys {
		_, err := etcd.Put(ctx, s.prefix+key, `{"`)
		must(t, err)
	}
	bad, err := s.Scan(ctx, 1000)
	if must(t, err); len(bad) != len(keys) {
		t.Errorf("%d of %d", len(bad), len(keys))
	}
	for _, one := range bad {
		if _, err := s.Remove(ctx, strings.Trim(one.Key, "'")); err != nil { // as a shell hands it on
			t.Errorf("%s: %v", one.Key, err)
		}
	}
	if bad, err := s.Scan(ctx, 1000); err != nil || len(bad) != 0 {
		t.Errorf("%v %v", bad, err)
	}
	register(t, s, "web1", "web", "x", time.Minute)
	if _, err := s.Remove(ctx, "node/web1"); err != ErrNotBad {
		t.Error(err)
	}
}

// TestUnwritable: what could not be read back is refused where it is written, with what is wrong.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for want, err := range map[string]error{
		`label "a b": a key is one word`: func() error {
			_, err := s.Presences.Register(ctx, Node{Name: "n", Labels: map[string]string{"a b": "c"}}, Alive{}, nil, time.Minute)
			return err
		}(),
		`"10.0.0.1\n- evil" is neither an IP address`:                 s.Services.Announce(ctx, "db", "n", Service{Address: "10.0.0.1\n- evil"}, false),
		`port: 70000 is not between 0 and 65535`:                      s.Services.Announce(ctx, "db", "n", Service{Port: 70000}, false),
		`command_given/c1 is not written to the fleet's record: max:`: s.Commands.Give(ctx, Command{ID: "c1", Max: -1, At: time.Now(), Until: time.Now()}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	err := s.Statuses.Set(ctx, "a\x1bb", Rollout, Failed, Status{})
	if err == nil || !strings.Contains(err.Error(), `is no name of a node`) {
		t.Error(err)
	}
	must(t, s.Statuses.Set(ctx, "a", Rollout, Failed, Status{Reason: "it\x1b[31m failed\nand more"}))
	st, err := s.Statuses.Get(ctx, "a", Rollout, Failed)
	if err != nil || st.Reason != "it\u241b[31m failed and more" {
		t.Errorf("%q %v", st.Reason, err)
	}
}

// FuzzRecords: no value of etcd, under any kind of key, ends the process, and what is read for people has nothing that
// a terminal obeys.
func FuzzRecords(f *testing.F) {
	for i := range kinds {
		for _, value := range hostile() {
			if len(value) < 10_000 {
				f.Add(i, []byte(value))
			}
		}
	}
	f.Fuzz(func(t *testing.T, i int, value []byte) {
		k := kinds[uint(i)%uint(len(kinds))]
		key, err := parseKey("/pullet/f/", "/pullet/f/"+k.example())
		if err != nil {
			t.Fatal(err)
		}
		if k.examine != nil {
			_ = k.examine(key, value)
		}
		st, err := examine[Status](key, value)
		if text := st.Reason + st.Gate + st.Clear + st.Log; err == nil && safetext.Obeyed(text) {
			t.Errorf("%q", text)
		}
	})
}

// FuzzKeys: no key ends the process, and each reads as one kind or none.
func FuzzKeys(f *testing.F) {
	for _, key := range strangeKeys() {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		k, err := parseKey("/pullet/f/", "/pullet/f/"+key)
		if (k.kind == nil) == (err == nil) {
			t.Errorf("%q: %+v %v", key, k, err)
		}
	})
}
