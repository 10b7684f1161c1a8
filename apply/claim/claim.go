// Package claim holds what steps make of a host, and finds the steps that contradict each other: two of them can never
// both be right, and each would undo the other at every pull.
//
//   - A Claim is one property of one thing: the shell of the user ann, the mode of a file, a line of it.
//   - Two claims on the same property contradict each other unless it is defined how they hold together. Equal values
//     do, and so do members of a list, lines and blocks of a text that do not touch each other, and what lies in a
//     directory.
//   - Find compares the claims of all steps. It knows no step, no action and no host.
package claim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Claim is one property of a thing on a host as a step wants it.
type Claim struct {
	Kind   string // of the thing: user, file, package
	Name   string // of the thing among those of its kind
	Aspect string // the property: shell, state, content
	Hidden bool   // the wanted value is never shown

	want want
}

// want is the wanted value of a property.
type want interface {
	// key tells wants of one property apart. Wants with the same key agree, unless it is empty.
	key() string
	// words returns the property with the value, and without it.
	words(aspect string) (full, bare string)
	// texts returns everything that was written in a repository, as far as a value must be known to be compared.
	texts() []string
}

// Thing is something on a host that has properties.
type Thing struct{ Kind, Name string }

// Of returns the thing of a kind with this name.
func Of(kind, name string) Thing { return Thing{kind, name} }

// Is claims the value of a property. Two values contradict each other unless they are equal.
func (t Thing) Is(aspect, value string) Claim { return t.claim(aspect, exactly(value)) }

// Secret is Is with a value that is compared and never shown.
func (t Thing) Secret(aspect, value string) Claim {
	c := t.Is(aspect, value)
	c.Hidden = true
	return c
}

// Version claims a version, or with a * at its end how it begins. Two of them agree if one version can be both.
func (t Thing) Version(v string) Claim { return t.claim("version", version(v)) }

// Has claims that a list of the thing has an item, among others.
func (t Thing) Has(list, item string) Claim { return t.claim(list, member{item, true}) }

// Lacks claims that a list of the thing does not have an item.
func (t Thing) Lacks(list, item string) Claim { return t.claim(list, member{item, false}) }

// Only claims that a list of the thing has these items and no others, in any order.
func (t Thing) Only(list string, items ...string) Claim {
	items = slices.Clone(items)
	slices.Sort(items)
	return t.claim(list, only(slices.Compact(items)))
}

func (t Thing) claim(aspect string, w want) Claim {
	return Claim{Kind: t.Kind, Name: t.Name, Aspect: aspect, want: w}
}

// Text returns the claim in words, such as shell "/bin/sh". A hidden value is left out.
func (c Claim) Text() string {
	full, bare := c.want.words(c.Aspect)
	if c.Hidden {
		return bare
	}
	return full
}

// Title returns the thing in words: file /etc/motd.
func (c Claim) Title() string { return c.Kind + " " + c.Name }

// Known returns the claims whose names and values are known. Of the whole content of a file it leaves only that there
// is one.
func Known(claims []Claim, known func(text string) bool) []Claim {
	var out []Claim
	for _, c := range claims {
		if _, all := c.want.(whole); all {
			c.want = whole{}
		}
		if known(c.Kind) && known(c.Name) && !slices.ContainsFunc(c.want.texts(), func(t string) bool { return !known(t) }) {
			out = append(out, c)
		}
	}
	return out
}

// exactly is a value of which there is one.
type exactly string

func (w exactly) key() string     { return "=" + string(w) }
func (w exactly) texts() []string { return []string{string(w)} }

func (w exactly) words(aspect string) (full, bare string) {
	return aspect + " " + strconv.Quote(string(w)), aspect
}

// version is a version, or the beginning of one with a *.
type version string

func (w version) key() string     { return "version " + string(w) }
func (w version) texts() []string { return []string{string(w)} }

func (w version) words(aspect string) (full, bare string) { return exactly(w).words(aspect) }

// fits reports whether one version can be both.
func (w version) fits(other version) bool {
	begin, open := strings.CutSuffix(string(w), "*")
	otherBegin, otherOpen := strings.CutSuffix(string(other), "*")
	switch {
	case open && otherOpen:
		return strings.HasPrefix(begin, otherBegin) || strings.HasPrefix(otherBegin, begin)
	case open:
		return strings.HasPrefix(string(other), begin) || strings.HasPrefix(withoutEpoch(other), begin)
	case otherOpen:
		return other.fits(w)
	}
	return w == other
}

// withoutEpoch returns a version without the number before its colon.
func withoutEpoch(v version) string {
	if _, rest, found := strings.Cut(string(v), ":"); found {
		return rest
	}
	return string(v)
}

// member is an item that a list has, or does not have.
type member struct {
	item string
	in   bool
}

func (w member) key() string     { return fmt.Sprint(w.in, " ", w.item) }
func (w member) texts() []string { return []string{w.item} }

func (w member) words(aspect string) (full, bare string) {
	if !w.in {
		return aspect + " without " + strconv.Quote(w.item), aspect
	}
	return aspect + " with " + strconv.Quote(w.item), aspect
}

// only is all items of a list, sorted.
type only []string

func (w only) key() string     { return "only " + strings.Join(w, "\x00") }
func (w only) texts() []string { return w }

func (w only) words(aspect string) (full, bare string) {
	if len(w) == 0 {
		return "no " + aspect, aspect
	}
	var quoted []string
	for _, item := range w {
		quoted = append(quoted, strconv.Quote(item))
	}
	return aspect + " only " + strings.Join(quoted, ", "), aspect
}

// agree reports whether two wants of one property can both hold, where it is defined how.
func agree(a, b want) bool {
	switch a := a.(type) {
	case version:
		if b, ok := b.(version); ok {
			return a.fits(b)
		}
	case member:
		switch b := b.(type) {
		case member:
			return a.item != b.item || a.in == b.in
		case only:
			return slices.Contains(b, a.item) == a.in
		}
	case only:
		if b, ok := b.(member); ok {
			return agree(b, a)
		}
	case state:
		if b, ok := b.(state); ok {
			return a.kinds&b.kinds != 0
		}
	case content:
		if b, ok := b.(content); ok {
			return a.besides(b) && b.besides(a)
		}
	}
	return a.key() == b.key() && a.key() != ""
}
