package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Editing is a text file of which a part is managed. The other bytes stay as they are.
type Editing struct {
	Name          string `yaml:"name,required"` // absolute path; a link is followed, beneath the root
	Create        bool   `yaml:"create"`        // make the file where there is none
	place.Placing `yaml:",inline"`
}

// The states of a line and a block.
const (
	present = "present"
	absent  = "absent"
)

// maxEdited bounds what is taken for a text.
const maxEdited = 16 << 20

// edit changes a text, and says what it did; "" is nothing.
type edit func(t *text) (string, error)

// placeError says that a place is not there yet. An earlier step may still make it, so a plan goes on.
type placeError struct{ error }

// check says what an edit would do.
func (a *Editing) check(h *apply.Host, do edit) (apply.Change, error) {
	at, w, err := a.find(h)
	if err != nil {
		return apply.Change{}, err
	}
	defer at.Close()
	old, have, err := readEdited(a.Name, at)
	if err != nil {
		return apply.Change{}, err
	}
	defer old.Close()
	info := old.Info
	want, summary, err := edited(have, do)
	var noPlace placeError
	switch {
	case errors.As(err, &noPlace):
		return apply.Change{Summary: summary}, nil
	case err != nil:
		return apply.Change{}, fmt.Errorf("%s: %w", a.Name, err)
	case info == nil && summary == "":
		return apply.Change{}, nil
	case info == nil && a.Create:
		return apply.Change{
			Summary: w.Created(place.NewMode) + ", " + summary, Diff: place.Diff(a.Name, nil, want), Lacks: a.lacks(at),
		}, nil
	case info == nil:
		return apply.Change{Summary: summary, Diff: place.Diff(a.Name, nil, want), Lacks: a.lacks(at)}, nil
	}
	differs := w.Differs(info)
	if summary == "" {
		return apply.Change{Summary: strings.Join(differs, ", ")}, nil
	}
	return apply.Change{
		Summary: strings.Join(append([]string{summary}, differs...), ", "),
		Diff:    place.Diff(a.Name, have, want),
	}, nil
}

// lacks is what has to be there for an edit: the file, or, where that is made, its directory.
func (a *Editing) lacks(at *hostfile.Entry) *apply.LackError {
	lack := place.Lacks(a.Name, at, a.MakeDirs)
	if lack == nil && !a.Create {
		return a.noFile()
	}
	return lack
}

func (a *Editing) noFile() *apply.LackError {
	return &apply.LackError{
		Path: filepath.Clean(a.Name),
		Text: fmt.Sprintf("there is no file %s: add create: true, or a step that makes it before this one", a.Name),
	}
}

func (a *Editing) find(h *apply.Host) (at *hostfile.Entry, w place.Wanted, err error) {
	if w, err = a.Wanted(h); err == nil {
		at, err = h.Follow(a.Name)
	}
	return at, w, err
}

// apply edits the file. Other steps may edit it at the same time: it is read, changed and replaced by one after
// another.
func (a *Editing) apply(ctx context.Context, h *apply.Host, do edit) error {
	at, w, err := a.find(h)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := w.Known(); err != nil {
		return err
	}
	if err := a.Parents(a.Name, at); err != nil {
		return err
	}
	release, err := h.Lock(ctx, filepath.Clean(a.Name))
	if err != nil {
		return err
	}
	defer release()
	old, have, err := readEdited(a.Name, at)
	if err != nil {
		return err
	}
	defer old.Close()
	info := old.Info
	want, summary, err := edited(have, do)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", a.Name, err)
	case info == nil && summary == "":
		return nil
	case info == nil && !a.Create:
		return a.noFile()
	case summary == "":
		return w.Set(at)
	}
	return a.ReplaceWith(ctx, h, a.Name, at, old, w, func(to io.Writer) error {
		_, err := to.Write(want)
		return err
	})
}

// readEdited opens a file that is to be edited, and reads it; no information means that there is none. It stays open:
// the new file gets the owner and mode of the one whose text it has, whatever stands at the path by then.
func readEdited(name string, at *hostfile.Entry) (old place.Replaced, data []byte, err error) {
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return old, nil, nil
	case err != nil:
		return old, nil, err
	case !info.Mode().IsRegular():
		return old, nil, fmt.Errorf("%s is %s, not a file", name, place.Kind(info))
	case info.Size() > maxEdited:
		return old, nil, fmt.Errorf(
			"%s has %d bytes, too many to be edited: the limit is %d",
			name,
			info.Size(),
			maxEdited,
		)
	}
	if old, err = place.OpenOld(at); err != nil || old.File == nil {
		return old, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(old.File, maxEdited))
	if zero := bytes.IndexByte(data, 0); err == nil && zero >= 0 {
		err = fmt.Errorf(
			"%s is no text: there is a zero byte at offset %d; manage it as a whole with file.managed",
			name,
			zero,
		)
	}
	if err != nil {
		old.Close()
	}
	return old, data, err
}

// text is a text by lines, each with its own end.
type text struct {
	lines []textLine
	end   string // of new lines: that of the first one
	isNew bool   // there is nothing yet
}

type textLine struct{ text, end string }

// byteOrderMark begins some texts. It is no part of the first line.
const byteOrderMark = "\ufeff"

func edited(data []byte, do edit) ([]byte, string, error) {
	whole, marked := strings.CutPrefix(string(data), byteOrderMark)
	t := &text{end: "\n", isNew: whole == ""}
	for line := range strings.Lines(whole) {
		bare := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if !strings.HasSuffix(line, "\n") { // a carriage return alone is no end
			bare = line
		}
		t.lines = append(t.lines, textLine{bare, line[len(bare):]})
	}
	if len(t.lines) > 0 && t.lines[0].end != "" {
		t.end = t.lines[0].end
	}
	summary, err := do(t)
	var out strings.Builder
	if marked {
		out.WriteString(byteOrderMark)
	}
	for _, l := range t.lines {
		out.WriteString(l.text + l.end)
	}
	return []byte(out.String()), summary, err
}

// insert puts lines before the one with this number.
func (t *text) insert(at int, lines ...string) {
	if at == len(t.lines) && at > 0 && t.lines[at-1].end == "" {
		t.lines[at-1].end = t.end
	}
	var added []textLine
	for _, l := range lines {
		added = append(added, textLine{l, t.end})
	}
	t.lines = slices.Insert(t.lines, at, added...)
}

// matching are the numbers of the lines that match.
func (t *text) matching(is func(string) bool) []int {
	var out []int
	for i, l := range t.lines {
		if is(l.text) {
			out = append(out, i)
		}
	}
	return out
}

// Where is the place of what is added to a text.
type Where struct {
	After  string `yaml:"after"`  // add it behind the last line that matches this regular expression; default: at the end
	Before string `yaml:"before"` // add it in front of the first line that matches this regular expression

	after, before *regexp.Regexp
}

// maxPattern bounds a regular expression.
const maxPattern = 1000

func pattern(param, expr string) (*regexp.Regexp, error) {
	if expr == "" {
		return nil, nil
	}
	if len(expr) > maxPattern {
		return nil, apply.BadParam(param, "the regular expression is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, apply.BadParam(param, "%w", err)
	}
	return re, nil
}

func (w *Where) bind() (err error) {
	if w.After != "" && w.Before != "" {
		return apply.BadParam("before", "after and before exclude each other: keep one")
	}
	if w.after, err = pattern("after", w.After); err == nil {
		w.before, err = pattern("before", w.Before)
	}
	return err
}

// place is where the text has it. In a new file everything comes at the end.
func (w *Where) place(t *text) (int, error) {
	if t.isNew || w.after == nil && w.before == nil {
		return len(t.lines), nil
	}
	if w.after != nil {
		if found := t.matching(w.after.MatchString); len(found) > 0 {
			return found[len(found)-1] + 1, nil
		}
		return 0, placeError{fmt.Errorf("no line matches after: %s", w.After)}
	}
	if found := t.matching(w.before.MatchString); len(found) > 0 {
		return found[0], nil
	}
	return 0, placeError{fmt.Errorf("no line matches before: %s", w.Before)}
}

// part is a part of an edited file, which the action itself removes.
func (a *Editing) part(what, action string, absent bool, params map[string]any) []apply.Resource {
	name := path.Clean(a.Name)
	out := apply.Resource{ID: "file " + name + ": " + what, Path: name, Part: true}
	if !absent {
		params["name"], params["state"] = name, "absent"
		out.Absent, out.Params = action, params
	}
	return []apply.Resource{out}
}
