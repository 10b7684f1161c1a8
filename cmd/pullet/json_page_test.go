package main

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/reference"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// jsonOf is what each command prints with -o json.
func jsonOf() map[string]reflect.Type {
	return map[string]reflect.Type{
		"pull": reflect.TypeFor[pullView](), "plan": reflect.TypeFor[apply.Report](), "forget": reflect.TypeFor[[]agent.Leftover](),
		"facts": reflect.TypeFor[map[string]any](), "status": reflect.TypeFor[fleetStatus](), "nodes": reflect.TypeFor[[]fullNode](),
		"failures": reflect.TypeFor[map[string][]failure](), "locks": reflect.TypeFor[[]heldLock](), "services": reflect.TypeFor[[]instance](),
		"rollout start": reflect.TypeFor[startView](), "rollout follow": reflect.TypeFor[state.Version](), "rollout status": reflect.TypeFor[rolloutView](),
		"rollout watch": reflect.TypeFor[rolloutView](), "logs": reflect.TypeFor[loggedText](), "logs --list": reflect.TypeFor[[]loggedRun](),
		"rollout pause": reflect.TypeFor[state.Switch](), "rollout resume": reflect.TypeFor[resumed](), "rollout history": reflect.TypeFor[[]pastVersion](),
		"rollout undo": reflect.TypeFor[undone](), "rollout fail": reflect.TypeFor[state.Version](), "rollout settle": reflect.TypeFor[state.Settled](),
		"events": reflect.TypeFor[[]eventLine](), "events show": reflect.TypeFor[eventView](), "event emit": reflect.TypeFor[emitted](),
		"event emit --noop": reflect.TypeFor[tried](),
		"events sinks":      reflect.TypeFor[[]sinkLine](),
		"reactions":         reflect.TypeFor[reactionsView](), "reactions show": reflect.TypeFor[state.ReactionStatus](), "reactions cancel": reflect.TypeFor[state.ReactionStatus](),
		"reactions pause": reflect.TypeFor[state.PausedReaction](), "reactions resume": reflect.TypeFor[resumedReaction](),
		"run": reflect.TypeFor[[]commandView](), "enable": reflect.TypeFor[switched](), "disable": reflect.TypeFor[switched](),
		"verify": reflect.TypeFor[verified](), "pending": reflect.TypeFor[pendingView](), "wait": reflect.TypeFor[finished](),
		"set-status": reflect.TypeFor[statusSet](), "history": reflect.TypeFor[[]pastRun](), "history RUN": reflect.TypeFor[apply.Report](),
		"journal": reflect.TypeFor[inProgress](), "secrets who": reflect.TypeFor[[]secretReader](), "doctor": reflect.TypeFor[[]finding](), "validate": reflect.TypeFor[render.ErrorList](),
		"render": reflect.TypeFor[catalogView](), "render --vars": reflect.TypeFor[map[string]any](), "render --vars --origin": reflect.TypeFor[[]render.Origin](),
		"explain": reflect.TypeFor[[]reference.Topic](), "schema": reflect.TypeFor[[]fileKind](), "graph": reflect.TypeFor[graphView](), "graph --events": reflect.TypeFor[[]eventEdge](),
		"eval": reflect.TypeFor[any](), "extension list": reflect.TypeFor[[]state.Extension](), "extension publish": reflect.TypeFor[state.Extension](), "fleet list": reflect.TypeFor[[]member](), "fleet minimum": reflect.TypeFor[minimumView](), "fleet minimum --raise": reflect.TypeFor[state.Minimum](), "datastore status": reflect.TypeFor[datastoreStatus](), "version": reflect.TypeFor[buildInfo](),
	}
}

// textOnly are the commands that have no result for programs.
func textOnly() []string {
	return []string{
		"agent", "init", "demo", "decommission", "rollout", "completion", "completion bash", "completion fish", "completion powershell",
		"completion zsh", "selftest", "fallback", "extension", "extension remove",
		"event", "datastore", "datastore backup", "datastore move", "datastore recover", "etcd", "fleet", "fleet add", "fleet create", "fleet invite", "fleet revoke", "fleet roles", "fleet rotate", "join", "secrets", "secrets edit", "secrets rekey", "secrets show",
	}
}

var updateJSON = flag.Bool("update-json", false, "write the tables of docs/json.md")

// TestJSONPage holds docs/json.md against the types that commands print, and the list of these against the commands.
func TestJSONPage(t *testing.T) {
	types := jsonOf()
	eachCommand((&app{out: io.Discard, err: io.Discard}).root(), func(path string) {
		if (types[path] == nil) == !slices.Contains(textOnly(), path) {
			t.Errorf("pullet %s: say in jsonOf what it prints, or in textOnly that it is nothing for programs", path)
		}
	})
	w := &jsonPage{objects: map[reflect.Type]string{}}
	want := w.tables(types)
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	const page, mark = "../../docs/json.md", "\n## What each command prints\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no part %s", page, mark)
	}
	if *updateJSON {
		if err := os.WriteFile(page, []byte(head+mark+want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if rest != want {
		t.Errorf("%s does not have what the commands print: go test ./cmd/pullet -run TestJSONPage -update-json", page)
	}
}

// typed NAME checks that what the last command printed has only the fields that docs/json.md has for a command.
func isTyped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || jsonOf()[args[0]] == nil {
		ts.Fatalf("usage: typed NAME, a command of jsonOf")
	}
	text := ts.ReadFile("stdout")
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(reflect.New(jsonOf()[args[0]]).Interface()); err != nil {
		ts.Fatalf("pullet %s prints what docs/json.md does not have: %v\n%s", args[0], err, text)
	}
}

// eachCommand visits the commands that do something, by their names.
func eachCommand(c *cobra.Command, visit func(path string)) {
	if _, path, ok := strings.Cut(c.CommandPath(), " "); ok && c.Runnable() {
		visit(path)
	}
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

// jsonPage collects the objects that are in what commands print.
type jsonPage struct {
	objects map[reflect.Type]string // their rows
	wrong   []string
}

func (p *jsonPage) tables(types map[string]reflect.Type) string {
	var b strings.Builder
	b.WriteString("\n| command | prints |\n| --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(types)) {
		fmt.Fprintf(&b, "| `pullet %s` | %s |\n", name, p.word(types[name], name))
	}
	b.WriteString("\n## Objects\n")
	for _, object := range slices.SortedFunc(maps.Keys(p.objects), func(a, b reflect.Type) int {
		return cmp.Or(cmp.Compare(objectName(a), objectName(b)), cmp.Compare(a.String(), b.String()))
	}) {
		fmt.Fprintf(&b, "\n### %s\n\n| field | value |\n| --- | --- |\n%s", objectName(object), p.objects[object])
	}
	return b.String()
}

// objectName is how the page calls a type: as Go does, the package before it where several packages have such a name.
func objectName(t reflect.Type) string {
	name := t.Name()
	switch t {
	case reflect.TypeFor[agent.Leftover]():
		return "Thing"
	case reflect.TypeFor[render.Error]():
		return "Mistake"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// word is a type in the page's words. What it is made of gets a table of its own.
func (p *jsonPage) word(t reflect.Type, at string) string {
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[render.Duration]():
		p.wrong = append(p.wrong, at+": a duration is a number of seconds")
		return "number"
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[state.Moment]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "any"
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "text"
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[json.Marshaler]()):
		p.wrong = append(p.wrong, at+": "+t.String()+" has a form of its own")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.word(t.Elem(), at)
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list of " + p.word(t.Elem(), at)
	case reflect.Map:
		return "map of " + p.word(t.Elem(), at)
	case reflect.Struct:
		p.object(t)
		return fmt.Sprintf("[%s](#%s)", objectName(t), strings.ToLower(objectName(t)))
	case reflect.Interface:
		return "any"
	}
	return "number"
}

// object makes the table of an object.
func (p *jsonPage) object(t reflect.Type) {
	if _, done := p.objects[t]; done {
		return
	}
	p.objects[t] = "" // it may be in itself
	var rows strings.Builder
	for _, f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		absent := ""
		if strings.Contains(options, "omit") {
			absent = ", may be missing"
		}
		fmt.Fprintf(&rows, "| `%s` | %s%s |\n", name, p.word(f.Type, t.Name()+"."+name), absent)
	}
	p.objects[t] = rows.String()
}

// fieldsOf are the fields that encoding/json prints, those of what is embedded among them. A field hides one of the
// same name that is deeper.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || !f.IsExported() || name == "-" {
			continue
		}
		i := slices.IndexFunc(out, func(have reflect.StructField) bool {
			other, _, _ := strings.Cut(have.Tag.Get("json"), ",")
			return other == name
		})
		switch {
		case i < 0:
			out = append(out, f)
		case len(f.Index) < len(out[i].Index):
			out[i] = f
		}
	}
	return out
}

// TestJSONIsTyped: what a command prints for programs has a type, which docs/json.md has fields of.
func TestJSONIsTyped(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("structured(map[")) || bytes.Contains(text, []byte("list(map[")) {
			t.Errorf("%s prints a map: give it a type", f.Name())
		}
	}
}
