package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// macrosBase is base/macros.yaml: which nodes get which macro files.
type macrosBase struct {
	Metadata *Metadata            `yaml:"metadata"`        // names the file; it changes nothing
	Macros   targeted[macroEntry] `yaml:"macros,required"` // by target
}

// macroEntry is a macro file of a target.
type macroEntry struct {
	Name string `yaml:"name,required"` // fleet for macros/fleet.yaml
}

// Macro is a named value that a repository defines: the text of a template, or what a command prints.
type Macro struct {
	Name   string
	Action string // template.expression, or an action that reads
	Params Params
	Args   Strings // the names of its arguments, which the text reads as {{ .name }}
	pos    Position
}

// ErrorAt is a mistake at the macro.
func (m *Macro) ErrorAt(format string, args ...any) *Error {
	return m.Params.errorAt(m.pos, format, args...)
}

// Into fills the action that v points to with the parameters of the macro.
func (m *Macro) Into(v any) ErrorList { return m.Params.Into(v, m.pos) }

// Macros are the macros that the node has and that run something, sorted.
func (c *Catalog) Macros() []*Macro {
	var out []*Macro
	for _, name := range c.scope.macros.names() {
		if m := c.scope.macros.all[name]; m.Action != templateExpression && m.pos.File != shippedFile {
			out = append(out, m)
		}
	}
	return out
}

// templateExpression is the action of macros that only compute.
const templateExpression = "template.expression"

// macroBody is the long form of a macro.
type macroBody struct {
	Action     actionName `yaml:"action,required"` // template.expression, or one that reads, such as cmd.run
	Parameters Params     `yaml:"parameters"`      // of the action
	Params     Strings    `yaml:"params"`          // names of the arguments, which the text reads as {{ .name }}
}

// compileMacros collects the node's macros. Macro files are plain YAML: the texts in them are templates, executed at
// each use.
func (c *compiler) compileMacros() {
	c.scope.macros.later = false
	c.shipMacros()
	for _, base := range c.files.base("base/macros.yaml") {
		var body macrosBase
		if !c.files.decode(base, &body) {
			continue
		}
		for _, t := range body.Macros {
			if !c.matches(base, t.key, t.target) {
				continue
			}
			for i, e := range t.entries {
				path := "macros/" + e.Name + ".yaml"
				if !c.repo.exists(path) {
					err := base.errorAt(t.nodes[i], "macros %q: there is no %s", e.Name, path)
					err.Hint = c.repo.fileHint("macros", e.Name)
					c.fail(err)
					continue
				}
				c.macroFile(c.files.plain(path))
			}
		}
	}
	c.checkMacros()
	c.parseMacros()
}

// checkMacros refuses macros that would never end.
func (c *compiler) checkMacros() {
	calls := map[string]Strings{}
	for name, m := range c.scope.macros.all {
		calls[name] = m.calls()
	}
	if loop := cycle(calls); loop != nil {
		m := c.scope.macros.all[loop[0]]
		c.fail(m.Params.errorAt(m.pos, "macro %q calls itself: %s", m.Name, strings.Join(loop, " -> ")))
	}
}

func (c *compiler) macroFile(doc *document) {
	if doc == nil || doc.root == nil {
		return
	}
	d := &decoder{doc: doc}
	defer func() { c.errs = append(c.errs, d.errs...) }()
	if doc.root.Kind != yaml.MappingNode {
		d.failf(doc.root, "expected a map of macros, found %s", kindName(doc.root))
		return
	}
	describing := d.described(doc.root, true)
	for _, e := range entries(doc.root) {
		if slices.Contains(describing, e.key.Value) {
			continue
		}
		m := d.macro(e)
		m.Name, m.pos = e.key.Value, doc.pos(e.key)
		c.scope.macros.all[m.Name] = m
	}
}

// macro reads the long form (action and parameters) or the short one (the action's name as a key, beside params).
func (d *decoder) macro(e entry) *Macro {
	if e.value.Kind == yaml.MappingNode && slices.ContainsFunc(entries(e.value), isShortForm) &&
		!hasKey(e.value, "action") {
		return d.shortMacro(e)
	}
	var body macroBody
	d.value(e.value, reflect.ValueOf(&body).Elem(), e.key.Value)
	return &Macro{Action: body.Action.name, Params: body.Parameters, Args: body.Params}
}

// isShortForm reports a key that names an action: fields of the long form have no dot.
func isShortForm(e entry) bool { return strings.Contains(e.key.Value, ".") }

func (d *decoder) shortMacro(e entry) *Macro {
	m := &Macro{}
	for _, field := range entries(e.value) {
		switch {
		case field.key.Value == "params":
			d.into(field.value, &m.Args)
		case isShortForm(field) && m.Action == "":
			m.Action = field.key.Value
			m.Params.decode(d, field.value)
		default:
			d.unknown(field, e.value, e.key.Value, []string{"params"})
		}
	}
	return m
}

// macroSet evaluates macros, each at most once per rendering and set of arguments.
type macroSet struct {
	all    map[string]*Macro
	values map[string]any
	byName map[string]any // see known
	active []string       // the macros that are being evaluated, to tell recursion
	later  bool           // they are not read yet
	// run executes a macro's command and returns what it prints. It is nil where nothing may be executed.
	run func(m *Macro) (string, error)
}

// runsCommand reports that one of these macros runs a command, itself or through another.
func (s *macroSet) runsCommand(names []string) bool {
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		m := s.all[name]
		if m == nil || seen[name] {
			continue
		}
		seen[name] = true
		if m.Action != templateExpression {
			return true
		}
		names = append(names, m.calls()...)
	}
	return false
}

// names are the macros that the node has, sorted.
func (s *macroSet) names() []string { return slices.Sorted(maps.Keys(s.all)) }

// known returns the macros that the node has, by name: a key of them is a call.
func (s *macroSet) known() map[string]any {
	if len(s.byName) != len(s.all) {
		s.byName = map[string]any{}
		for name := range s.all {
			s.byName[name] = true
		}
	}
	return s.byName
}

// call is the value of a macro.
func (s *macroSet) call(in *scope, name string, args []any) (any, error) {
	m, ok := s.all[name]
	if !ok && s.later {
		return nil, fmt.Errorf("macro %q is not known here: macros may read variables, so they come behind them; "+
			"call it where the variable is used", name)
	}
	if !ok {
		return nil, fmt.Errorf(
			"there is no macro %q (%s)",
			name,
			cmp.Or(DidYouMean(name, s.names()), "see base/macros.yaml"),
		)
	}
	if len(args) != len(m.Args) {
		return nil, fmt.Errorf("macro %q takes %s, got %d", name, argumentNames(m.Args), len(args))
	}
	if slices.Contains(s.active, name) {
		return nil, fmt.Errorf("macro %q calls itself: %s", name, strings.Join(append(s.active, name), " -> "))
	}
	if m.lists() {
		names, err := in.servers(fmt.Sprint(revealed(args[0])))
		return foreign(names), err
	}
	key := fmt.Sprintf("%s%q", name, args)
	if v, ok := s.values[key]; ok {
		return v, nil
	}
	s.active = append(s.active, name)
	outer, own := in.carrier, &carrier{secrets: in.secrets}
	defer func() { s.active, in.carrier = s.active[:len(s.active)-1], outer }()
	in.carrier = own
	text, err := s.evaluate(in, m, args)
	if err != nil {
		return nil, &macroError{m, err}
	}
	value := scalarValue(text)
	if own.touched || m.Action != templateExpression {
		value = foreign(value)
	}
	if own.secret {
		if err := in.secrets.addMade(text); err != nil {
			return nil, &macroError{m, err}
		}
	}
	s.values[key] = value
	return value, nil
}

// argumentNames says which arguments a macro takes.
func argumentNames(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return "the arguments " + strings.Join(names, ", ")
}

func (s *macroSet) evaluate(in *scope, m *Macro, args []any) (string, error) {
	dot := map[string]any{"args": args}
	for i, name := range m.Args {
		dot[name] = args[i]
	}
	if m.Action != templateExpression {
		if s.run == nil {
			return "", fmt.Errorf("macro %q reads this host (%s), and what it returns %w", m.Name, m.Action, ErrNotYet)
		}
		called := *m
		var err error
		if called.Params, err = s.called(in, m, dot); err != nil {
			return "", err
		}
		return s.run(&called)
	}
	content := m.Params.lookup("content")
	if content == nil {
		return "", m.Params.errorAt(m.pos, "macro %q: \"content\" is missing", m.Name)
	}
	return s.text(in, m, content.Value, dot)
}

// text executes a text of a macro.
func (s *macroSet) text(in *scope, m *Macro, text string, dot map[string]any) (string, error) {
	src := &source{path: m.pos.File, text: text}
	out, bad := src.run(in, dot)
	if bad != nil {
		if errors.Is(bad, ErrNotYet) {
			return "", fmt.Errorf("macro %q (%s): it uses what %w", m.Name, m.pos, ErrNotYet)
		}
		return "", &macroTextError{m, bad}
	}
	return strings.TrimSpace(string(out)), nil
}

// called are the parameters of a macro's action for these arguments.
func (s *macroSet) called(in *scope, m *Macro, dot map[string]any) (Params, error) {
	out := Params{doc: m.Params.doc}
	for _, e := range m.Params.pairs {
		value, err := s.filled(in, m, e.value, dot)
		if err != nil {
			return out, err
		}
		out.pairs = append(out.pairs, entry{e.key, value})
	}
	return out, nil
}

// filled is a value with the templates in it executed.
func (s *macroSet) filled(in *scope, m *Macro, of *yaml.Node, dot map[string]any) (*yaml.Node, error) {
	value := *resolve(of)
	if value.Kind == yaml.ScalarNode && strings.Contains(value.Value, "{{") {
		text, err := s.text(in, m, value.Value, dot)
		value.Value, value.Tag = text, ""
		return &value, err
	}
	value.Content = slices.Clone(value.Content)
	for i, c := range value.Content {
		if value.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		inner, err := s.filled(in, m, c, dot)
		if err != nil {
			return nil, err
		}
		value.Content[i] = inner
	}
	return &value, nil
}

// run parses and executes the source.
func (s *source) run(in *scope, dot any) ([]byte, *Error) {
	s.owner = in.x
	if err := s.parse(in, in.x.funcs, false); err != nil {
		return nil, err
	}
	defer in.begin(s)()
	if s.changes {
		dot = ownCopy(dot)
	}
	r, err := s.execute(in, dot)
	if err != nil {
		return nil, err
	}
	return r.text, nil
}

// scalarValue reads a macro's text as a YAML scalar, so that numbers and booleans compare as such.
func scalarValue(text string) any {
	var v any
	if len(text) > 64 { // no number is that long
		return text
	}
	if err := yaml.Load([]byte(text), &v); err != nil {
		return text
	}
	switch v.(type) {
	case bool, int, float64:
		return v
	}
	return text
}
