package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// vouching are hosts with a targeted step. web1 and web2 have keys in secrets.yaml, web3 has none.
type vouching struct {
	t    *testing.T
	keys map[string][]trust.Identity
	repo *render.Repository
}

func newVouching(t *testing.T) *vouching {
	t.Helper()
	v := &vouching{t: t, keys: map[string][]trust.Identity{}}
	for _, name := range []string{"web1", "web2", "web3"} {
		file := filepath.Join(t.TempDir(), name)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if v.keys[name], err = trust.ParseIdentities(trust.File{Name: name, Content: text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	v.lists("web1", "web2")
	return v
}

// lists makes a repository whose secrets.yaml has the keys of these hosts.
func (v *vouching) lists(nodes ...string) {
	listed := "hosts:\n"
	for _, name := range nodes {
		listed += "  " + name + ": " + v.keys[name][0].Recipient.Text + "\n"
	}
	v.repo = render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
		"secrets.yaml":     {Data: []byte(listed)},
		"nodes/hosts.yaml": {Data: []byte("nodes: {web1: {}, web2: {}, web3: {}}")},
		"base/jobs.yaml":   {Data: []byte("jobs: {'web*': [{name: site}]}")},
		"jobs/site.yaml": {Data: []byte("steps:\n" +
			"  - {name: a, action: cmd.run, parameters: {cmd: x}, runOptions: {target: {limit: 1}}}\n" +
			"  - {name: b, action: cmd.run, parameters: {cmd: x}, runOptions: {target: {limit: 1}}}\n")},
	}})
}

// on is a host's part, at a version, and its steps a and b.
func (v *vouching) on(node, version string) (*vouches, []apply.GatedStep) {
	v.t.Helper()
	cat, err := v.repo.Compile(render.Input{Node: render.Node{Name: node}, Version: version})
	if err != nil {
		v.t.Fatal(err)
	}
	var steps []apply.GatedStep
	for _, s := range cat.Jobs[0].Steps {
		steps = append(steps, apply.GatedStep{Step: s, Job: cat.Jobs[0]})
	}
	read := func() ([]trust.Identity, error) { return v.keys[node], nil }
	return &vouches{
		keys: &keyring{read: read}, program: &compiled{catalog: cat, repo: v.repo}, fleet: "f", node: node,
	}, steps
}

// opened is what a host makes of a value that etcd has.
func (v *vouching) opened(node, version string, step int, of state.StepResult, value []byte) (render.StepResult, error) {
	v.t.Helper()
	var shared sharedResult
	if err := json.Unmarshal(value, &shared); err != nil {
		v.t.Fatal(err)
	}
	here, steps := v.on(node, version)
	return here.open(steps[step], of, shared)
}

// TestVouches: a host believes a result that the key of its writer signed for this attempt of this step of this
// version, and no other.
func TestVouches(t *testing.T) {
	t.Parallel()
	v := newVouching(t)
	web1, steps := v.on("web1", "v1")
	result := render.StepResult{Result: "ok", StdOut: "canary", Secret: true}
	value, err := web1.pack(steps[0], "1", result)
	if err != nil || strings.Contains(string(value), "canary") {
		t.Fatalf("%s, %v", value, err)
	}
	of := state.StepResult{Node: "web1", Result: "ok", Attempt: "1"}
	for _, node := range []string{"web1", "web2"} {
		if r, err := v.opened(node, "v1", 0, of, value); err != nil || r.StdOut != "canary" || !r.Secret {
			t.Errorf("%s: %+v, %v", node, r, err)
		}
	}
	if r, err := v.opened("web3", "v1", 0, of, value); err != nil || r.StdOut != "" || !r.Withheld {
		t.Errorf("a host without a key: %+v, %v", r, err)
	}

	plain, err := web1.pack(steps[0], "1", render.StepResult{Result: "ok", StdOut: "in clear"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := v.opened("web3", "v1", 0, of, plain); err != nil || r.StdOut != "in clear" {
		t.Errorf("what is no secret: %+v, %v", r, err)
	}
	web2, _ := v.on("web2", "v1")
	forged, err := web2.pack(steps[0], "1", render.StepResult{Result: "ok", StdOut: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	failed, err := web1.pack(steps[0], "1", render.StepResult{Result: "failed"})
	if err != nil {
		t.Fatal(err)
	}
	unsigned := []byte(`{"result":"ok","stdOut":"forged"}`)
	stripped := []byte(fmt.Sprintf(`{"signed":%q}`, "eyJyZXN1bHQiOiJvayJ9"))
	for name, c := range map[string]struct {
		value   []byte
		version string
		step    int
		of      state.StepResult
	}{
		"another host in its name":  {forged, "v1", 0, of},
		"nobody's":                  {unsigned, "v1", 0, of},
		"without the signature":     {stripped, "v1", 0, of},
		"failed, said to be ok":     {failed, "v1", 0, of},
		"of another version":        {plain, "v2", 0, of},
		"of another step":           {plain, "v1", 1, of},
		"of an attempt before":      {plain, "v1", 0, state.StepResult{Node: "web1", Result: "ok", Attempt: "2"}},
		"one host's as another's":   {plain, "v1", 0, state.StepResult{Node: "web2", Result: "ok", Attempt: "1"}},
		"encrypted, said to be not": {[]byte(strings.Replace(string(value), `"encrypted":true,`, "", 1)), "v1", 0, of},
	} {
		r, err := v.opened("web2", c.version, c.step, c.of, c.value)
		want := "the result of site/" + []string{"a", "b"}[c.step] + " that etcd has from " + c.of.Node + " was not written by " + c.of.Node
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %+v, %v\nwant %s", name, r, err, want)
		}
	}

	// A host without a key signs nothing, and an operator's word holds nothing.
	if r, err := v.opened("web1", "v1", 0, state.StepResult{Node: "web3", Result: "ok"}, unsigned); err != nil || r.StdOut != "forged" {
		t.Errorf("a host without a key: %+v, %v", r, err)
	}
	for _, text := range []string{"{}", `{"stdOut":"forged","data":{"a":1}}`} {
		if r, err := v.opened("web1", "v1", 0, of, []byte(text)); err != nil || r.StdOut != "" || r.Data != nil {
			t.Errorf("an operator's word: %+v, %v", r, err)
		}
	}
}

// TestVouchesOfStrangers: where all hosts with a step have keys, nobody else is believed.
func TestVouchesOfStrangers(t *testing.T) {
	t.Parallel()
	v := newVouching(t)
	v.repo = render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
		"secrets.yaml":     {Data: []byte("hosts: {web1: " + v.keys["web1"][0].Recipient.Text + "}")},
		"nodes/hosts.yaml": {Data: []byte("nodes: {web1: {}, db1: {}}")},
		"base/jobs.yaml":   {Data: []byte("jobs: {'web*': [{name: site}]}")},
		"jobs/site.yaml":   {Data: []byte("steps: [{name: a, action: cmd.run, parameters: {cmd: x}}]")},
	}})
	r, err := v.opened("web1", "v1", 0, state.StepResult{Node: "evil", Result: "ok"}, []byte(`{"result":"ok","stdOut":"forged"}`))
	want := "the result of site/a that etcd has from evil was not written by evil: it has no SSH key below hosts in secrets.yaml, " +
		"where all hosts with the step have one; if its key changed since: pullet rollout settle site/a --again --force"
	if err == nil || err.Error() != want {
		t.Errorf("%+v, %v\nwant %s", r, err, want)
	}
}

// TestVouchesWithoutReaders: a secret that can be encrypted for nobody is kept from the fleet's record.
func TestVouchesWithoutReaders(t *testing.T) {
	t.Parallel()
	v := newVouching(t)
	v.repo = render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs: {'web*': [{name: site}]}")},
		"jobs/site.yaml": {Data: []byte("steps: [{name: a, action: cmd.run, parameters: {cmd: x}}]")},
	}})
	web1, steps := v.on("web1", "v1")
	value, err := web1.pack(steps[0], "1", render.StepResult{Result: "ok", StdOut: "canary", Secret: true})
	if err != nil || strings.Contains(string(value), "canary") || !strings.Contains(string(value), `"withheld":true`) {
		t.Errorf("%s, %v", value, err)
	}
	value, err = web1.pack(steps[0], "1", render.StepResult{Result: "ok", Withheld: true})
	if err != nil || !strings.Contains(string(value), `"withheld":true`) {
		t.Errorf("what was withheld before: %s, %v", value, err)
	}
	value, err = web1.pack(steps[0], "1", render.StepResult{Result: "ok", StdOut: "in clear"})
	if err != nil || string(value) != `{"result":"ok","stdOut":"in clear"}` {
		t.Errorf("%s, %v", value, err)
	}
}

// TestVouchesOfAnotherKey: a host whose key is not the listed one says so, and shares nothing that nobody would
// believe.
func TestVouchesOfAnotherKey(t *testing.T) {
	t.Parallel()
	v := newVouching(t)
	v.keys["web1"] = v.keys["web3"]
	web1, steps := v.on("web1", "v1")
	_, err := web1.pack(steps[0], "1", render.StepResult{Result: "ok"})
	if want := "secrets.yaml has another SSH key for this host than it has: fix it below hosts"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestResealed: what a host returned is closed to one that secrets.yaml lists later, until a host that can read it
// encrypts it anew. Nobody can put another content in its place in doing so.
func TestResealed(t *testing.T) {
	t.Parallel()
	v := newVouching(t)
	web1, steps := v.on("web1", "v1")
	value, err := web1.pack(steps[0], "1", render.StepResult{Result: "ok", StdOut: "canary", Secret: true})
	if err != nil {
		t.Fatal(err)
	}
	of := state.StepResult{Node: "web1", Result: "ok", Attempt: "1"}
	anew := func(node string, value []byte) []byte {
		t.Helper()
		here, _ := v.on(node, "v1")
		var shared sharedResult
		if err := json.Unmarshal(value, &shared); err != nil {
			t.Fatal(err)
		}
		out, err := here.forAll(steps[0], of, shared)
		if err != nil {
			t.Fatal(node, err)
		}
		return out
	}
	if out := anew("web2", value); out != nil {
		t.Errorf("all of its readers can read it, and it was encrypted anew: %s", out)
	}

	v.lists("web1", "web2", "web3")
	if r, err := v.opened("web3", "v1", 0, of, value); !errors.Is(err, errClosed) {
		t.Errorf("before: %+v, %v", r, err)
	}
	if out := anew("web3", value); out != nil {
		t.Errorf("a host that cannot read it encrypted it: %s", out)
	}
	later := anew("web2", value)
	for _, node := range []string{"web1", "web2", "web3"} {
		if r, err := v.opened(node, "v1", 0, of, later); err != nil || r.StdOut != "canary" {
			t.Errorf("%s: %+v, %v", node, r, err)
		}
	}
	if out := anew("web1", later); out != nil {
		t.Errorf("once more: %s", out)
	}

	var forged sharedResult
	if err := json.Unmarshal(later, &forged); err != nil {
		t.Fatal(err)
	}
	to, _, err := web1.readers(steps[0])
	if err != nil {
		t.Fatal(err)
	}
	other := append(make([]byte, saltSize), `{"result":"ok","stdOut":"forged"}`...)
	for name, change := range map[string]func(*sharedResult) error{
		"another content":            func(r *sharedResult) error { return r.seal(other, to) },
		"under the digest of before": func(r *sharedResult) (err error) { r.Signed, err = trust.SealBinary(other, to); return err },
		"shorter than a salt":        func(r *sharedResult) (err error) { r.Signed, err = trust.SealBinary(nil, to); return err },
		"a text of SOPS":             func(r *sharedResult) error { r.Signed = []byte("a: 1\nsops: {age: []}\n"); return nil },
	} {
		one := forged
		if err := change(&one); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := v.opened("web2", "v1", 0, of, text); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
