package apply

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/render"
)

// Reader is implemented by actions that a macro may use.
type Reader interface {
	Action
	// Reads is an error where the action, with these parameters, does more than to read.
	Reads() error
	// Read returns what the macro's value is made of. It changes nothing.
	Read(ctx context.Context, h *Host) (string, error)
}

// macroTimeout is how long a macro may read when it does not say: other steps wait for its answer.
const macroTimeout = time.Minute

// macros finds those that could not be evaluated: one that is needed late would fail late.
func (b *binder) macros() {
	for _, m := range b.cat.Macros() {
		if m.Action == "" { // that was reported when it was read
			continue
		}
		reader, err := b.program.reader(m)
		shown := b.program.specs[m.Action].Shows.secretInMacro(b.cat, m)
		b.errs = append(b.errs, shown...)
		switch {
		case len(shown) > 0:
		case err != nil:
			b.errs = append(b.errs, b.noMacro(m, err))
		case m.Params.Templated(): // the values are known when the macro is called
		default:
			b.errs = append(b.errs, bindMacro(b.cat, m, reader)...)
		}
	}
}

// reader is a new value of the macro's action, if that can be a macro.
func (p *Program) reader(m *render.Macro) (Reader, error) {
	spec, ok := p.specs[m.Action]
	if !ok {
		return nil, fmt.Errorf("there is no action %q", m.Action)
	}
	reader, ok := spec.New().(Reader)
	if !ok {
		return nil, fmt.Errorf(
			"%s cannot be a macro: macros only read, with %s",
			m.Action,
			strings.Join(p.readers(), ", "),
		)
	}
	return reader, nil
}

// readers are the actions that a macro may use.
func (p *Program) readers() []string {
	var out []string
	for name, spec := range p.specs {
		if _, ok := spec.New().(Reader); ok || spec.Macro {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (b *binder) noMacro(m *render.Macro, err error) *render.Error {
	e := m.ErrorAt("macro %q: %v", m.Name, err)
	if _, known := b.program.specs[m.Action]; known {
		return e
	}
	if near := render.Nearest(m.Action, b.program.readers()); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
		return e
	}
	return b.noAction(e, m.Action)
}

// bindMacro gives the action of a macro its parameters.
func bindMacro(cat *render.Catalog, m *render.Macro, reader Reader) render.ErrorList {
	if errs := m.Into(reader); len(errs) > 0 {
		return errs
	}
	err := reader.Reads()
	if binder, ok := reader.(Binder); ok && err == nil {
		err = binder.Bind(Binding{Catalog: cat, read: sha256.New()})
	}
	if err != nil {
		return render.ErrorList{m.ErrorAt("macro %q: %v", m.Name, err)}
	}
	return nil
}

// runMacro reads what a macro's action reads. A plan does it too.
func (x *execution) runMacro(ctx context.Context) func(*render.Macro) (string, error) {
	return func(m *render.Macro) (string, error) {
		reader, err := x.program.reader(m)
		if err == nil {
			err = x.program.specs[m.Action].Shows.secretInMacro(x.program.catalog, m).Err()
		}
		if err == nil {
			err = bindMacro(x.program.catalog, m, reader).Err()
		}
		if err != nil {
			return "", err
		}
		limit := macroTimeout
		if text := m.Params.Text("timeout"); text != "" {
			if limit, err = render.ParseDuration(text); err != nil {
				return "", fmt.Errorf("macro %q: timeout: %w", m.Name, err)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		text, err := reader.Read(ctx, x.options.Host)
		if _, left := errors.AsType[*UntrustedError](err); left {
			return "", &UntrustedError{fmt.Sprintf("the macro %q", m.Name)}
		}
		var said *ExitError
		if errors.As(err, &said) {
			err = errors.New(said.Output.Failure())
		}
		if err != nil {
			return "", fmt.Errorf("macro %q: %w", m.Name, err)
		}
		return strings.TrimSpace(text), nil
	}
}
