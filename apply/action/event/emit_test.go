package emit_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestEmit: a run tells of the event once, as the parameters say; a plan does not.
func TestEmit(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]apply.EmittedEvent{
		"{name: backup/wanted}": {Name: "backup/wanted", Hosts: []string{"n1"}},
		"{name: a, data: {n: 1, of: '{{ server.name }}'}, dedupe: d, hosts: [web1]}": {
			Name: "a", Data: map[string]any{"n": 1, "of": "n1"}, Dedupe: "d", Hosts: []string{"web1"},
		},
	} {
		s := actiontest.New(t)
		p := s.MustBind("event.emit", params)
		if s.Plan(p); len(s.Emitted) > 0 {
			t.Errorf("%s: the plan told %+v", params, s.Emitted)
		}
		s.Run(p)
		s.Run(p)
		if len(s.Emitted) != 1 || !reflect.DeepEqual(s.Emitted[0], want) {
			t.Errorf("%s: told %+v, want %+v", params, s.Emitted, want)
		}
	}
}

// TestEmitAgain: it is told again when something changed that the step watches.
func TestEmitAgain(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	p, err := s.BindText("steps:\n- {name: motd, action: file.managed, parameters: {name: /motd, content: x}}\n" +
		"- {name: it, action: event.emit, parameters: {name: a}, watch: [motd]}\n")
	if err != nil {
		t.Fatal(err)
	}
	s.RunAll(t.Context(), p)
	if err := os.WriteFile(s.Path("/motd"), []byte("y"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := s.RunAll(t.Context(), p); r.Why() != "" || len(s.Emitted) != 2 {
		t.Errorf("%s: told %d times", r.Why(), len(s.Emitted))
	}
}

// TestEmitSensitive: what a sensitive step knows, or another one returned, is not told.
func TestEmitSensitive(t *testing.T) {
	t.Parallel()
	const refused = "data: a sensitive step tells no event: all hosts of the fleet read it"
	s := actiontest.New(t)
	_, err := s.BindText("steps:\n- {name: it, action: event.emit, parameters: {name: a}, sensitive: true}\n")
	if err == nil || !strings.Contains(err.Error(), refused) {
		t.Error(err)
	}
	p, err := s.BindText("steps:\n- {name: asks, action: cmd.run, parameters: {cmd: echo hunter2-hunter2}, sensitive: true}\n" +
		"- {name: it, action: event.emit, parameters: {name: a, data: {x: '{{ (step `asks`).StdOut }}'}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if r := s.RunAll(t.Context(), p); len(s.Emitted) > 0 || len(r.Steps) != 2 || !strings.Contains(r.Steps[1].Reason, refused) {
		t.Errorf("%+v %+v", s.Emitted, r.Steps[len(r.Steps)-1])
	}
}

// TestNobodyTells: where nobody keeps events the step fails, and says who would.
func TestNobodyTells(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	p := s.MustBind("event.emit", "{name: a}")
	o := s.Options()
	o.Host.Emit = nil
	report, err := p.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Only(report); r.Outcome != apply.Failed ||
		!strings.Contains(r.Reason, "nobody here tells the fleet of events: it is told by pullet pull and by the agent") {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}
