package apply

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"iter"
	"strings"
	"time"

	"github.com/pullet/pullet/render"
)

// Action is the desired state of one thing on a host. Its fields are the parameters, named by yaml tags. A value is
// bound once and used by one goroutine.
type Action interface {
	// Check compares the host with what is desired. It never writes. An empty Change means that nothing is to be done.
	Check(ctx context.Context, h *Host) (Change, error)
	// Apply makes the change that Check found, after which Check finds none. When ctx ends it returns soon, with its
	// children gone.
	Apply(ctx context.Context, h *Host, c Change) (Output, error)
}

// Change is what an action would do. The zero Change is none.
type Change struct {
	Summary string // a few words: "create", "content, mode 0644 -> 0600"
	Diff    string // a unified diff where there is text to compare
	State   string // the resource's own word, as Check found it
	Same    bool   // it only reads: nothing will be different
	Lost    bool   // it removes what cannot be put back
	Outside bool   // only something outside of the host changed, such as a branch: the change is not drift
	// Removes are the paths that will be gone. A plan remembers them: what comes later may depend on it.
	Removes []string
	// Lacks is what Apply fails for unless another step has made it before; nil is nothing.
	Lacks *LackError
}

// Empty reports that nothing is to be done.
func (c Change) Empty() bool { return c.Summary == "" }

// Output is what applying an action returned, for the conditions of later steps.
type Output struct {
	State    string // the resource's own word, if it has one
	ExitCode int
	StdOut   string
	StdErr   string
	Data     any    // what a reader needs as more than text: plain data, as JSON has it
	Killed   bool   // another process ended the command with SIGKILL
	Same     bool   // it ran, and nothing is different after all
	Did      string // what it did, in a few words, where Check could not know that: "nginx 1.22 -> 1.24"
	Later    bool   // the rest of it is done when the run has ended: see Host.Later
	Late     bool   // what it did does not answer a change of what the step watches: it has to react as well
	// the host has to boot before the step is done: the run ends, the host boots, and the run goes on behind the step
	Reboot bool
}

// Binder is implemented by actions that check their parameters, or read the catalog, before anything is touched.
type Binder interface {
	Bind(b Binding) error
}

// Binding is what an action may use while it is bound.
type Binding struct {
	Catalog *render.Catalog
	Step    *render.Step

	specs   map[string]Spec
	read    hash.Hash      // of what the action read
	results render.Results // nil before the run
	run     func(*render.Macro) (string, error)
	secret  *bool // what it read holds a sensitive variable
}

// watchSecrets remembers that what the action reads holds a sensitive variable.
func (b Binding) watchSecrets(text string, data []byte) {
	if known := b.Catalog.Secrets(); b.secret != nil && (known.Hold(text) || known.Hold(string(data))) {
		*b.secret = true
	}
}

// Template executes the text of a file template. Before the run it fails with render.ErrNotYet where the template needs
// what only a run can tell; an action that hands this error on is bound again when its step runs.
func (b Binding) Template(name, text string) ([]byte, error) {
	data, err := b.Catalog.Template(b.Step, name, text, b.results, b.run)
	b.read.Write(data) // never fails
	b.watchSecrets(text, data)
	return data, err
}

// File is the content of a file below files/ of the repository.
func (b Binding) File(name string) ([]byte, error) {
	data, err := b.Catalog.File(name)
	b.read.Write(data)
	if render.IsSealed(name) && b.secret != nil {
		*b.secret = true
	}
	return data, err
}

// Secret reports that what the action read so far, or a parameter of it, is a secret.
func (b Binding) Secret() bool {
	return b.Step != nil && b.Step.Secret || b.secret != nil && *b.secret
}

// Source is the file below files/ that a parameter source names, executed where it is a template.
func (b Binding) Source(name string, template bool) ([]byte, error) {
	if err := CheckSource(name); err != nil {
		return nil, err
	}
	data, err := b.File(name)
	if err != nil {
		if below, _ := b.Catalog.Below(name); len(below) > 0 {
			err = fmt.Errorf("files/%s is a directory: add recurse: true", name)
		}
		return nil, &ParamError{Param: "source", Err: err}
	}
	if !template {
		return data, nil
	}
	out, err := b.Template("files/"+name, string(data))
	bad, failed := errors.AsType[render.ErrorList](err)
	if failed && render.IsSealed(name) && !errors.Is(err, render.ErrNotYet) {
		return nil, fmt.Errorf(
			"files/%s: invalid template in line %d, which is not shown here: pullet secrets edit files/%[1]s",
			name,
			bad[0].Pos.Line,
		)
	}
	return out, err
}

// CheckSource refuses the scheme of Salt's file server in a parameter source: what it would serve is a file of the
// repository here.
func CheckSource(source string) error {
	if name, ok := strings.CutPrefix(source, "salt://"); ok {
		return BadParam(
			"source",
			"salt:// is not a path: sources are files of the repository, below files/: write source: %s",
			name,
		)
	}
	return nil
}

// OtherSteps are the other steps of the host, each with an action that has its parameters and is not bound. Steps whose
// action does not exist are left out.
func (b Binding) OtherSteps() iter.Seq2[*render.Step, Action] {
	return func(yield func(*render.Step, Action) bool) {
		for _, j := range b.Catalog.Jobs {
			for _, s := range j.Steps {
				spec, known := b.specs[s.Action]
				if !known || s.ID() == b.Step.ID() {
					continue
				}
				act := spec.New()
				_ = s.Params.Into(act, s.Pos) // its mistakes are reported when it is bound
				if !yield(s, act) {
					return
				}
			}
		}
	}
}

// ParamError is a mistake in one parameter, which the message then points to.
type ParamError struct {
	Param string
	Err   error
}

func (e *ParamError) Error() string { return e.Param + ": " + e.Err.Error() }
func (e *ParamError) Unwrap() error { return e.Err }

// BadParam makes a ParamError.
func BadParam(param, format string, args ...any) error {
	return &ParamError{param, fmt.Errorf(format, args...)}
}

// Unchecked is implemented by actions that cannot always tell whether they are needed, such as a command. When
// Unchecked is true, a recorded success for the same version and parameters stands for the check.
type Unchecked interface {
	Unchecked() bool
}

// Reactor is implemented by actions that can do something when what they watch or listen to changed and they had
// nothing to do themselves: a service restarts, a command runs.
type Reactor interface {
	React(ctx context.Context, h *Host) (Output, error)
	// Reaction is what React does, in a word or two: restart.
	Reaction() string
}

// OutcomeRules is implemented by actions whose parameters say what came of them. Where failed is set, an *ExitError is
// no failure by itself.
type OutcomeRules interface {
	Verdict() (changed, failed *render.Expression)
}

// ExitError is a command that ran and said no.
type ExitError struct {
	Command string
	Output  Output
}

func (e *ExitError) Error() string {
	return e.Command + ": " + e.Output.Failure()
}

// Resource is a thing on a host that a step manages.
type Resource struct {
	ID     string         // "file /etc/motd": equal ones are the same thing, whoever declares it
	Path   string         // of the file or link that it is or stands in, which can be put back; "" for another thing
	Part   bool           // it stands in the file, and is not the file
	Fills  string         // a directory that is filled with what only the step knows
	Absent string         // the action that removes it; "" if none does
	Params map[string]any // of that action
}

// Located is implemented by actions that work on files of the host. An error of such a step is a fault of the host
// where a local user can change one of the paths.
type Located interface {
	// Paths returns the paths that the action reads or changes. A path that ends in / stands for everything in that
	// directory.
	Paths(h *Host) []string
}

// NamedResource is a resource that an action removes by its name.
func NamedResource(kind, name, absent string) Resource {
	return Resource{ID: kind + " " + name, Absent: absent, Params: map[string]any{"name": name}}
}

// Manager is implemented by actions that bring things to a host: what is no longer declared can be told, and removed.
type Manager interface {
	Manages() []Resource
}

// PendingError says that what a step waits for is not there yet: no failure. Apply is asked again after Every until
// Within is over; then the step is pending, and the next pull goes on with it.
type PendingError struct {
	Reason        string
	Every, Within time.Duration
}

func (e *PendingError) Error() string { return e.Reason }

// Rebooter is implemented by actions that make the host boot. Such a step is done when it was started before the host
// booted last.
type Rebooter interface {
	Reboots()
}

// Spec describes an action: one entry of the Actions of its family. What a run knows of a single action stands here, or
// is an interface that the action implements: package apply names no action.
type Spec struct {
	Name    string // "file.managed"
	Summary string // one sentence
	Passive bool   // never counts as a change: waits, expressions
	// KeepsHost is set where the action changes nothing on the host although it counts as a change: it may stand in a
	// validation, as a Passive one and a command may.
	KeepsHost bool
	NoFiles   bool          // makes neither files nor directories that a later step may need
	Macro     bool          // macros may use it although it is no Reader: they compute its value themselves
	New       func() Action // a new value with the parameters' defaults

	// Provides are things that a step makes, and Needs those that it obviously cannot do without: with the ordering
	// genius, who needs a thing comes after all who provide it. Nil: none.
	Provides, Needs Things

	Shows Shown // parameters that others than root can see, beside name

	// Removes is what people call the things that the action removes, where the kind in their ids says less: "published
	// service".
	Removes string
	// RemovesFirst is set where these things use others, which are therefore removed after them.
	RemovesFirst bool
}

// Shown are parameters that others than root can see. A secret in one is refused.
type Shown struct {
	Params  []string
	Where   string // they are seen
	Instead string // of it: where secrets belong
}

// ByName are actions by their names. Of two with one name the later counts.
func ByName(specs []Spec) map[string]Spec {
	out := make(map[string]Spec, len(specs))
	for _, s := range specs {
		out[s.Name] = s
	}
	return out
}

// Title is the name that people see of a thing that the action removes.
func (s Spec) Title(id string) string {
	if _, name, ok := strings.Cut(id, " "); ok && s.Removes != "" {
		return s.Removes + " " + name
	}
	return id
}

// Things are what steps provide for each other, such as "user ada", told from a step's parameters as they are written.
// Equal texts are the same thing.
type Things func(p render.Params) []string

// of are the things of a step with these parameters.
func (t Things) of(p render.Params) []string {
	if t == nil {
		return nil
	}
	return t(p)
}

// Named are things of a kind, by the values of parameters: a text each, or a list of texts.
func Named(kind string, params ...string) Things {
	return func(p render.Params) []string {
		var out []string
		for _, param := range params {
			for _, name := range p.Texts(param) {
				out = append(out, kind+" "+name)
			}
		}
		return out
	}
}

// Joiner is implemented by actions whose steps can be made in one go, such as packages in one transaction. Where the
// order leaves it free, steps of one Join are made together first; then each checks for itself, and applies alone what
// is still to be done.
type Joiner interface {
	Action
	// Join names what can be made together with it; "" is nothing.
	Join() string
	// ApplyTogether makes the changes of several actions of the same Join, this one included. An error is no step's
	// failure: each finds out for itself.
	ApplyTogether(ctx context.Context, h *Host, all []Action) error
}
