package apply_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// looks counts how often it is compared with the host, and makes an empty file.
type looks struct {
	Name   string `yaml:"name,required"`
	counts map[string]int
}

func (a *looks) Prepares() string { return a.Name }

func (a *looks) Look(_ *apply.Host, at *hostfile.Entry) (apply.Change, apply.Prepare, error) {
	a.counts["look"]++
	if at.Exists() {
		return apply.Change{}, nil, nil
	}
	return apply.Change{Summary: "create"}, func(context.Context) (*apply.Prepared, error) {
		a.counts["prepare"]++
		if filepath.Base(a.Name) == "bad" {
			return nil, errors.New("no room")
		}
		c, err := at.Candidate() // the entry is open still
		if err != nil {
			return nil, err
		}
		return &apply.Prepared{New: c, Place: c.PlaceUnsynced, Drop: c.Drop}, nil
	}, nil
}

func (a *looks) Check(context.Context, *apply.Host) (apply.Change, error) {
	a.counts["check"]++
	return apply.Change{}, nil
}

func (a *looks) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	a.counts["apply"]++
	return apply.Output{}, nil
}

func (a *looks) Manages() []apply.Resource {
	return []apply.Resource{{ID: "file " + a.Name, Path: a.Name}}
}

// TestLookedAtOnce: a step of a group is compared with the host once, in one directory that stays open until its file has its name. One that cannot
// be prepared fails alone.
func TestLookedAtOnce(t *testing.T) {
	l, counts := newLab(t), map[string]int{}
	l.root = t.TempDir()
	l.more = []apply.Spec{{Name: "t.look", New: func() apply.Action { return &looks{counts: counts} }}}
	looked := func(name string) string {
		return "{name: " + name + ", action: t.look, parameters: {name: /" + name + "}}"
	}
	steps := one(looked("a"), looked("bad"), looked("b"))
	for _, c := range []struct {
		want          string
		look, prepare int
	}{{"bad failed, a changed, b changed", 3, 3}, {"a ok, bad failed, b ok", 6, 4}} {
		r, err := l.program(steps).Run(t.Context(), l.options())
		if err != nil {
			t.Fatal(err)
		}
		l.want(r, c.want)
		if counts["look"] != c.look || counts["prepare"] != c.prepare || counts["check"]+counts["apply"] > 0 {
			t.Errorf("%s: %v", c.want, counts)
		}
	}
}
