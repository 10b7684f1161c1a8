package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Script runs a script: a file of the repository, or the text that stands in the step. The program that its first line
// names (#!) reads it, or /bin/sh where it names none. It succeeds with exit code 0.
//
// While it runs, the script lies in a temporary file that only the user who runs it can read: ps does not show it, and
// /tmp may be mounted noexec. The file is gone afterwards; when the agent is killed, the next pull removes it.
//
// With creates, removes, unless or onlyif it runs whenever they say so. Without, it runs once for each version and set
// of parameters; runs: always makes it run at every pull.
//
// Example:
//
//	steps:
//	  - name: database
//	    action: cmd.script
//	    parameters:
//	      script: |
//	        #!/bin/sh -e
//	        createuser "$1"
//	        createdb --owner "$1" "$1"
//	      args: [shop]
//	      user: postgres
//	      unless: psql -lqt | cut -d '|' -f 1 | grep -qw shop
type Script struct {
	Source   string   `yaml:"source"`   // a file below files/ of the repository
	Template bool     `yaml:"template"` // execute the source as a template
	Script   string   `yaml:"script"`   // the text itself
	Args     []string `yaml:"args"`     // what the script gets as $1 and so on
	// a program, or a list of it and its arguments; default: the one in the first line
	Interpreter render.Strings `yaml:"interpreter"`
	Options     `yaml:",inline"`

	text []byte
}

// Bind reads the script: what is wrong with it is known before the node is touched.
func (a *Script) Bind(b apply.Binding) error {
	err := a.check()
	switch {
	case err != nil:
		return err
	case a.Source != "" && a.Script != "":
		return apply.BadParam("source", "script and source exclude each other: keep one")
	case a.Source == "" && strings.TrimSpace(a.Script) == "":
		return errors.New("there is nothing to run: give source, a file below files/, or script, the text itself")
	case a.Template && a.Source == "":
		return apply.BadParam("template", "only a source can be a template: script is rendered with the job")
	case len(a.Interpreter) > 0 && a.Interpreter[0] == "":
		return apply.BadParam("interpreter", "is empty")
	}
	if a.text = []byte(a.Script); a.Source != "" {
		if a.text, err = b.Source(a.Source, a.Template); err != nil {
			return err
		}
	}
	if err := a.bind(b); err != nil {
		return err
	}
	return a.checkText()
}

// checkText refuses what no interpreter would read.
func (a *Script) checkText() error {
	param := "script"
	if a.Source != "" {
		param = "source"
	}
	first, _, _ := bytes.Cut(a.text, []byte("\n"))
	switch {
	case bytes.IndexByte(a.text, 0) >= 0:
		return apply.BadParam(param, "is a program and no script: place it with file.managed and run it with cmd.run")
	case bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(first, []byte("\r")):
		return apply.BadParam(
			param,
			"its lines end as on Windows, and no interpreter has a name that ends in a carriage return: save it with unix "+
				"line ends",
		)
	}
	return nil
}

// interpreter is the program that reads the script, with its arguments. As in the kernel, what follows the program in
// the first line is one argument.
func (a *Script) interpreter() []string {
	if len(a.Interpreter) > 0 {
		return a.Interpreter
	}
	first, _, _ := strings.Cut(string(a.text), "\n")
	line, named := strings.CutPrefix(first, "#!")
	program, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case !named || program == "":
		return []string{"/bin/sh"}
	case strings.TrimSpace(argument) == "":
		return []string{program}
	}
	return []string{program, strings.TrimSpace(argument)}
}

// String is the script and its arguments in one line, for people.
func (a *Script) String() string {
	name := a.Source
	if name == "" {
		lines := len(strings.Split(strings.TrimSpace(a.Script), "\n"))
		name = fmt.Sprintf("a script of %d lines", lines)
		if lines == 1 {
			name = "a script of 1 line"
		}
	}
	return render.Line{Args: append([]string{name}, a.Args...)}.String()
}

// Check asks the guards. They are commands that only read.
func (a *Script) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	return a.due(ctx, h, a.String())
}

// Apply runs the script.
func (a *Script) Apply(ctx context.Context, h *apply.Host, change apply.Change) (out apply.Output, err error) {
	if err := change.Unanswered(); err != nil {
		return apply.Output{}, err
	}
	name := "script"
	if a.Source != "" {
		name = path.Base(a.Source)
	}
	file, remove, err := h.PrivateFile(name, a.User, a.text)
	if err != nil {
		return apply.Output{}, fmt.Errorf("%s: %w", a, err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	args := append(append([]string(nil), a.interpreter()...), file)
	out, err = a.execute(ctx, h, a.String(), append(args, a.Args...))
	// What an interpreter says names the file, whose place is another one each time.
	out.StdErr = strings.ReplaceAll(out.StdErr, file, name)
	if err != nil {
		err = apply.Renamed(err, file, name)
	}
	return out, err
}

// React runs the script again because something that it watches changed.
func (a *Script) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	return a.Apply(ctx, h, apply.Change{})
}
