// Package extension runs the actions that a repository brings itself: executables that read what to do as JSON.
package extension

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// List are the actions that a repository brings itself: executables that read what to do as JSON.
type List []*definition

// definition is one of them, on this host.
type definition struct {
	manifest *render.Extension
	schema   *paramSchema // nil: its manifest has mistakes
	digest   string       // of the executable that is meant, once Fetch knows it
	says     string       // who says that it is meant: the beginning of a sentence that ends with the digest
	path     string       // of the executable, once Fetch has put it there
	failed   error        // why it did not
}

// Load reads the manifests of a repository, with every mistake in them. Those with mistakes can be bound, so that steps
// that use them are not called wrong, too. A name in a module of the built-in actions is a mistake.
func Load(repo *render.Repository, builtin []apply.Spec) (List, render.ErrorList) {
	list, errs := repo.Extensions()
	errs = slices.Clone(errs)
	var out List
	for _, e := range list {
		b := &definition{manifest: e}
		own := append(shadows(e, builtin), wrongVersion(e)...)
		if len(own) == 0 && !e.Broken {
			b.schema, own = compileSchema(e)
			own = append(own, signedMistakes(e)...)
		}
		errs = append(errs, own...)
		out = append(out, b)
	}
	return out, errs
}

// shadows refuses names of built-in modules: a later version of pullet may have an action of that name.
func shadows(e *render.Extension, builtin []apply.Spec) render.ErrorList {
	module, word, _ := strings.Cut(e.Name, ".")
	for _, spec := range builtin {
		if built, _, _ := strings.Cut(spec.Name, "."); built == module {
			bad := e.ErrorAt(
				[]string{"name"},
				"name: %s is a module of pullet's own, and %q would take a name in it",
				module,
				e.Name,
			)
			bad.Hint = "take a word of yours, such as acme." + word
			return render.ErrorList{bad}
		}
	}
	return nil
}

// Specs describes the actions, as All does the built-in ones.
func (x List) Specs() []apply.Spec {
	var out []apply.Spec
	for _, b := range x {
		out = append(out, apply.Spec{Name: b.manifest.Name, Summary: b.manifest.Summary, Passive: b.manifest.Passive,
			New: b.action})
	}
	return out
}

func (b *definition) action() apply.Action {
	if b.manifest.Check {
		return &extension{def: b}
	}
	return &unchecked{extension{def: b}}
}

// extension is a step of an action that the repository brings itself.
type extension struct {
	def *definition
	request
}

// unchecked is one that cannot tell whether it is needed, as a command without a guard.
type unchecked struct{ extension }

// Take holds the parameters against the manifest's schema.
func (a *extension) Take(p render.Params, fallback render.Position) render.ErrorList {
	if a.def.schema == nil {
		return nil
	}
	var errs render.ErrorList
	a.Parameters, errs = a.def.schema.decode(p, fallback)
	return errs
}

// Bind notes whom the step is for.
func (a *extension) Bind(b apply.Binding) error {
	node := b.Catalog.Node
	a.Node, a.Version = requestNode{node.Name, node.Labels}, b.Catalog.Version
	if a.Node.Labels == nil {
		a.Node.Labels = map[string]string{}
	}
	return nil
}

// Check asks the executable what it would change.
func (a *extension) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	var answer checkAnswer
	if _, err := a.ask(ctx, h, "check", &answer); err != nil {
		return apply.Change{}, err
	}
	return apply.Change{Summary: oneLine(answer.Change), Diff: answer.Diff, State: answer.State}, nil
}

// Apply lets the executable make the change.
func (a *extension) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	var answer applyAnswer
	out, err := a.ask(ctx, h, "apply", &answer)
	if err != nil {
		return out, err
	}
	out.StdOut, out.State, out.Data = answer.StdOut, answer.State, answer.Data
	out.Same = answer.Changed != nil && !*answer.Changed
	return out, nil
}

// Unchecked is true: whether it is needed cannot be seen.
func (a *unchecked) Unchecked() bool { return true }

// Check always finds something to do.
func (a *unchecked) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "run " + a.extension.def.manifest.Name}, nil
}

// Reaction is what React does.
func (a *unchecked) Reaction() string { return "run again" }

// React runs it again because something that it watches changed.
func (a *unchecked) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	return a.Apply(ctx, h, apply.Change{})
}

// ask starts the executable and reads its answer.
func (a *extension) ask(ctx context.Context, h *apply.Host, mode string, answer any) (apply.Output, error) {
	fail := func(out apply.Output, format string, args ...any) (apply.Output, error) {
		return out, a.def.named(fmt.Errorf(a.def.manifest.Name+" "+mode+": "+format, args...))
	}
	if err := h.MayRun("the extension"); err != nil {
		return apply.Output{}, err
	}
	if err := a.def.ready(); err != nil {
		return fail(apply.Output{}, "%w", err)
	}
	a.Protocol, a.Action, a.Mode, a.Root = protocol, a.def.manifest.Name, mode, h.Root
	if a.def.manifest.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.def.manifest.Timeout.Std())
		defer cancel()
	}
	input, err := a.encode()
	if err != nil {
		return fail(apply.Output{}, "%w", err)
	}
	args := append(slices.Clone(a.def.manifest.Interpreter), a.def.path, mode)
	out, err := h.Run(ctx, apply.Command{Args: args, Env: a.environment(), Stdin: input})
	switch {
	case err != nil:
		return fail(out, "%w%s", err, a.def.whyNotStarted(err))
	case out.ExitCode != 0:
		return fail(out, "%s", out.Failure())
	case out.Truncated():
		return fail(out, "the answer is larger than 1 MiB")
	}
	if err := decodeAnswer(out.StdOut, answer); err != nil {
		return fail(out, "%w", err)
	}
	return out, nil
}

// named is an error that calls the executable what the repository does: on the host it is a file with a digest for a
// name.
func (b *definition) named(err error) error {
	if b.path == "" {
		return err
	}
	return apply.Renamed(err, b.path, b.manifest.Source())
}

// whyNotStarted explains what the kernel says of an executable that is there.
func (b *definition) whyNotStarted(err error) string {
	const own = "; interpreter: in the manifest names a program that runs it"
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return ": it is for another kind of machine, or a script without #! in its first line" + own
	case errors.Is(err, fs.ErrPermission):
		return ": perhaps its file system is mounted noexec" + own
	case errors.Is(err, fs.ErrNotExist) && len(b.manifest.Interpreter) == 0:
		return ": " + b.firstLine() + " is not on this host: install it before, in a step that this one requires" + own
	}
	return ""
}

// firstLine is what the first line of a script says runs it.
func (b *definition) firstLine() string {
	f, err := os.Open(b.path)
	if err != nil {
		return "its interpreter"
	}
	defer f.Close()
	begin := make([]byte, 128)
	n, _ := f.Read(begin) // of an empty file nothing can be said
	line, _, _ := strings.Cut(string(begin[:n]), "\n")
	if program, ok := strings.CutPrefix(line, "#!"); ok && len(strings.Fields(program)) > 0 {
		return strings.Fields(program)[0]
	}
	return "the loader that it was linked for"
}

// oneLine is a text as it stands in a table.
func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > 200 {
		return string(runes[:197]) + "..."
	}
	return string(runes)
}
