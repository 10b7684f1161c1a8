package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// signing is a host that runs commands of listed operators, and who gives them.
type signing struct {
	*host
	t         *testing.T
	authority *authority.Authority
	etcd      *state.Store
}

func newSigning(t *testing.T, allowed ...string) *signing {
	t.Helper()
	a, err := authority.Create("default", time.Now().Add(-24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	m, endpoint := newMeter(t)
	s := &signing{host: newHost(t, job("one", "true")).member("default", "web1", "web", endpoint), t: t, authority: a, etcd: m.store}
	s.write("ca.pem", string(a.Bundle()))
	s.Etcd.TLS.CA = filepath.Join(s.home, "ca.pem")
	s.Agent.AllowRun = render.AllowRun{Operators: allowed}
	s.exits(ExitOK, "")
	return s
}

// credentials are a key and a certificate, valid for a while from a time on.
func (s *signing) credentials(name string, kind authority.Kind, from time.Time, life time.Duration) []byte {
	s.t.Helper()
	key, csr, err := authority.Request()
	if err != nil {
		s.t.Fatal(err)
	}
	chain, err := s.authority.Issue(csr, authority.Subject{Fleet: "default", Name: name, Kind: kind}, nil, life, from)
	if err != nil {
		s.t.Fatal(err)
	}
	return append(key, chain...)
}

// operator are the credentials of one.
func (s *signing) operator(name string) []byte {
	return s.credentials(name, authority.Operator, time.Now(), time.Hour)
}

// command is one that is given now and leaves a mark.
func (s *signing) command(id string) state.Command {
	now := time.Now().UTC()
	return state.Command{
		ID: id, Args: []string{"echo " + id + " >> ran"}, Target: "web1", Stages: [][]string{{"web1"}}, Max: 1,
		Timeout: time.Minute, By: "alice (root@laptop)", At: now, Until: now.Add(time.Hour),
	}
}

// signed is a command with a signature.
func (s *signing) signed(fleet string, credentials []byte, c state.Command) state.Command {
	s.t.Helper()
	if err := c.Sign(fleet, credentials); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// comes gives a command, pulls, and says what came of it.
func (s *signing) comes(c state.Command) state.CommandResult {
	s.t.Helper()
	if err := s.etcd.Commands.Give(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.exits(ExitOK, "")
	return s.result(c.ID)
}

func (s *signing) result(id string) state.CommandResult {
	s.t.Helper()
	got, _, err := s.etcd.Commands.Get(s.t.Context(), id)
	if err != nil || got == nil {
		s.t.Fatal(got, err)
	}
	return got.Results["web1"]
}

// refused checks that a command did not run, and that its reason has these words.
func (s *signing) refused(what string, c state.Command, words string) {
	s.t.Helper()
	before := s.file("ran")
	r := s.comes(c)
	if r.State != state.Refused || !strings.Contains(r.Reason, words) || s.file("ran") != before {
		s.t.Errorf("%s: %+v, want %q", what, r, words)
	}
}

// TestSignedCommandRuns: the operators that a host lists may have it run commands, and the record and the log say whose
// signature the host saw. Without a list no signature is asked for.
func TestSignedCommandRuns(t *testing.T) {
	t.Parallel()
	s := newSigning(t, "alice", "bob")
	if r := s.comes(s.signed("default", s.operator("alice"), s.command("c1"))); r.State != state.Ran || r.Signer != "alice" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(s.log.String(), "running for the operator alice: ") {
		t.Error(s.log.String())
	}
	s.Agent.AllowRun = render.AllowRun{Operators: []string{"operators"}}
	if r := s.comes(s.signed("default", s.operator("carol"), s.command("c2"))); r.State != state.Ran || r.Signer != "carol" {
		t.Errorf("%+v", r)
	}
	s.Agent.AllowRun = render.AllowRun{Anybody: true}
	if r := s.comes(s.command("c3")); r.State != state.Ran || r.Signer != "" {
		t.Errorf("%+v", r)
	}
	if got := s.file("ran"); got != "c1\nc2\nc3\n" {
		t.Errorf("%q", got)
	}
}

// TestUnsignedCommandIsRefused: with a list, a command has to come from one who is on it: by a certificate of the
// fleet's authority for operators, that is valid now.
func TestUnsignedCommandIsRefused(t *testing.T) {
	t.Parallel()
	s := newSigning(t, "alice", "bob")
	s.refused("unsigned", s.command("c1"), "asked for by alice (root@laptop), which is not verified; agent.allowRun in "+
		" allows the operators alice, bob: it has no signature: ")
	s.refused("not listed", s.signed("default", s.operator("eve"), s.command("c2")),
		"the operator eve asked; agent.allowRun in  allows the operators alice, bob: have one of them give it")
	for id, kind := range map[string]authority.Kind{"c3": authority.Node, "c4": authority.Viewer, "c5": authority.Keeper} {
		name := map[bool]string{true: "root", false: "alice"}[kind == authority.Keeper]
		s.refused(string(kind), s.signed("default", s.credentials(name, kind, time.Now(), time.Hour), s.command(id)),
			"the "+string(kind)+" "+name+" signed it, and commands are for operators to give")
	}
	expired := s.credentials("alice", authority.Operator, time.Now().Add(-2*time.Hour), time.Hour)
	s.refused("expired", s.signed("default", expired, s.command("c6")), "the certificate of operator alice: it ended at ")
	real := s.authority
	s.authority, _ = authority.Create("default", time.Now())
	stranger := s.operator("alice")
	s.authority = real
	s.refused("another authority", s.signed("default", stranger, s.command("c7")), "the fleet's authority did not sign it")
	if got := s.file("ran"); got != "" {
		t.Errorf("%q", got)
	}
}

// TestSignedCommandChanged: who can write the record can neither change a signed command, nor bring it to another fleet
// or under another name, nor have it run before or after its time.
func TestSignedCommandChanged(t *testing.T) {
	t.Parallel()
	s := newSigning(t, "operators")
	alice := s.operator("alice")
	sign := func(id string) state.Command { return s.signed("default", alice, s.command(id)) }
	c := sign("c1")
	c.Args = []string{"echo other >> ran"}
	s.refused("changed arguments", c, "operator alice did not sign this")
	c = sign("c2")
	c.Stages, c.Until = [][]string{{"web2"}, {"web1"}}, c.Until.Add(time.Hour)
	c.Stages = c.Stages[1:]
	s.refused("a later end", c, "operator alice did not sign this")
	s.refused("another fleet", s.signed("test", alice, s.command("c3")), "operator alice did not sign this")
	c = sign("c4")
	if r := s.comes(c); r.State != state.Ran {
		t.Errorf("%+v", r)
	}
	c.ID = "c5"
	s.refused("another id", c, "operator alice did not sign this")
	old := s.command("c6")
	old.At, old.Until = old.At.Add(-2*time.Hour), old.Until.Add(-2*time.Hour)
	s.refused("after its end", s.signed("default", alice, old), "the operator alice asked; agent.allowRun in  allows every operator "+
		"of the fleet: it ended at ")
	early := s.command("c7")
	early.At, early.Until = early.At.Add(time.Hour), early.Until.Add(2*time.Hour)
	s.refused("before it is given", s.signed("default", alice, early), "set the clock that is wrong")
	if got := s.file("ran"); got != "c4\n" {
		t.Errorf("%q", got)
	}
}

// TestSignedCommandRunsOnce: a command that the record forgot, with what came of it, is not run again when somebody
// gives it again. The record of another time forgets it as well.
func TestSignedCommandRunsOnce(t *testing.T) {
	t.Parallel()
	s := newSigning(t, "alice")
	c := s.signed("default", s.operator("alice"), s.command("c1"))
	if r := s.comes(c); r.State != state.Ran {
		t.Fatalf("%+v", r)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: s.etcd.Client.Endpoints()}) // one that writes anything
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	root, _ := strings.CutSuffix(s.etcd.Commands.Prefix("c1", ""), "command_/c1/")
	gone, err := etcd.Delete(t.Context(), root+"command_", clientv3.WithPrefix())
	if err != nil || gone.Deleted < 4 {
		t.Fatal(gone, err)
	}
	s.refused("once more", c, "the operator alice asked; agent.allowRun in  allows the operator alice: this host began with it before")
	if r := s.comes(s.signed("default", s.operator("alice"), s.command("c2"))); r.State != state.Ran {
		t.Errorf("%+v", r)
	}
	if got := s.file("ran"); got != "c1\nc2\n" {
		t.Errorf("%q", got)
	}
}

// TestSignedCommandEndsWhileItWaits: a signed command whose time ends while the host waits for its turn does not run.
func TestSignedCommandEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	s := newSigning(t, "alice")
	c, left := s.command("c1"), 2*time.Second
	c.Stages, c.At, c.Until = [][]string{{"dead", "web1"}}, c.At.Add(-2*time.Hour), c.At.Add(left-5*time.Minute)
	c = s.signed("default", s.operator("alice"), c)
	claim := s.etcd.Commands.Prefix("c1", "claim") + "0"
	_, err := s.etcd.Client.Txn(t.Context()).Then(state.Put(claim, state.Claim{Node: "dead"})).Commit()
	if err := errors.Join(err, s.etcd.Commands.Give(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	leaves := time.AfterFunc(left+100*time.Millisecond, func() {
		_, err := s.etcd.Client.Txn(t.Context()).Then(clientv3.OpDelete(claim), s.etcd.Bells.RingOp()).Commit()
		if err != nil {
			t.Error(err)
		}
	})
	defer leaves.Stop()
	if _, err := s.with(Options{Wait: time.Minute}); err != nil {
		t.Error(err)
	}
	if r := s.result("c1"); r.State != state.Refused || !strings.Contains(r.Reason, ": it ended at ") || s.file("ran") != "" {
		t.Errorf("%+v", r)
	}
}

// TestSignedCommandIsNotedFirst: a host that cannot note that it begins with a signed command does not run it.
func TestSignedCommandIsNotedFirst(t *testing.T) {
	t.Parallel()
	o := &orders{local: &local{fleet: &joined{}, dir: filepath.Join(t.TempDir(), "gone")}}
	r := state.CommandResult{Signer: "alice", State: state.Running}
	if err := o.remember(state.Command{ID: "c1"}, &r); err == nil || r.State != state.Failed || !strings.HasPrefix(r.Reason, "it did not run") || r.Ended.IsZero() {
		t.Errorf("%v %+v", err, r)
	}
	if err := o.remember(state.Command{ID: "c2"}, &state.CommandResult{}); err != nil {
		t.Errorf("nothing is noted of one without a signature: %v", err)
	}
}

// TestSignCommandConfig: a command is signed with the certificate of the operator who types it, whether the key is in a
// file of its own or not. Without one, and with that of a host, it is not.
func TestSignCommandConfig(t *testing.T) {
	t.Parallel()
	s := newSigning(t, "alice")
	alice := s.operator("alice")
	at := bytes.Index(alice, []byte("-----BEGIN CERTIFICATE"))
	s.write("both.pem", string(alice))
	s.write("key.pem", string(alice[:at]))
	s.write("cert.pem", string(alice[at:]))
	s.write("node.pem", string(s.credentials("web1", authority.Node, time.Now(), time.Hour)))
	files := func(cert, key string) state.TLS {
		return state.TLS{Cert: filepath.Join(s.home, cert), Key: filepath.Join(s.home, key)}
	}
	for name, c := range map[string]struct {
		etcd Etcd
		want string
	}{
		"nothing":                  {Etcd{}, ""},
		"a host":                   {Etcd{TLS: files("node.pem", "node.pem")}, ""},
		"operator":                 {Etcd{TLS: files("node.pem", "node.pem"), Operator: files("both.pem", "both.pem")}, "alice"},
		"operator, with two files": {Etcd{Operator: files("cert.pem", "key.pem")}, "alice"},
		"tls of an operator":       {Etcd{TLS: files("both.pem", "both.pem")}, "alice"},
	} {
		config, command := s.Config, s.command("c1")
		config.Etcd = c.etcd
		err := config.SignCommand(&command)
		if (command.Signature != "") != (c.want != "") || err != nil {
			t.Errorf("%s: %v %q", name, err, command.Signature)
		}
		if who, _ := command.Signer("default", s.authority.Bundle(), time.Now()); who != c.want {
			t.Errorf("%s: %q", name, who)
		}
	}
	config, command := s.Config, s.command("c1")
	config.Etcd.Operator = files("cert.pem", "gone.pem")
	if err := config.SignCommand(&command); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no key: %v", err)
	}
}

// TestAllowRunConfig: a list of operators needs an authority that could have certified them.
func TestAllowRunConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "pullet.yaml")
	for text, want := range map[string]string{
		"agent: {allowRun: [operators]}": file + ":3:9: agent.allowRun allows every operator of the fleet, and etcd.tls.ca is not set: this host believes no " +
			"authority that could have certified them; have it join the fleet: pullet fleet invite web1, or write allowRun: true",
		"agent: {allowRun: [alice]}\netcd: {tls: {ca: ca.pem}}": "",
		"agent: {allowRun: true}":                               "",
		"agent: {allowRun: []}":                                 "",
		"agent: {allowRun: alice}":                              "pullet.yaml:3:19: allowRun: expected true, false or a list",
	} {
		text = "node: {name: web1}\nrepositories: [{name: main, url: /nowhere}]\n" + text + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig(file, t.TempDir()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
