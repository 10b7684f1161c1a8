package pkg

import (
	"cmp"
	"slices"
	"strings"
)

// rpmFormat is what rpm -q prints of a package: its name, version and architecture, and the names
// that it provides, with their versions.
const rpmFormat = `%{NAME}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\t%{ARCH}\t[%{PROVIDENAME}=%{PROVIDEVERSION} ]\n`

// rpmSet reads it. Of several versions, such as kernels, the newest comes first.
func rpmSet(text string) pkgSet {
	set := pkgSet{all: map[string][]pkgState{}}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 3 || f[0] == "" { // "no package provides ..."
			continue
		}
		p := pkgState{name: f[0], version: noEpoch(f[1]), arch: f[2], installed: true}
		if len(f) > 3 {
			p.provides = map[string]string{}
			for _, one := range strings.Fields(f[3]) {
				i := strings.LastIndexByte(one, '=')
				p.provides[one[:max(0, i)]] = noEpoch(one[i+1:])
			}
		}
		set.all[p.name] = append(set.all[p.name], p)
	}
	for _, list := range set.all {
		slices.SortFunc(list, func(a, b pkgState) int { return compareRPM(b.version, a.version) })
	}
	return set
}

// noEpoch leaves out an epoch that says nothing.
func noEpoch(version string) string {
	return strings.TrimPrefix(strings.TrimPrefix(version, "(none):"), "0:")
}

// rpmSpec is a package as dnf takes it: name, name-version, name-version.arch.
func rpmSpec(w pkgWant) string {
	spec, arch, exact := strings.Cut(w.name, ":")
	if w.version != "" {
		spec += "-" + w.version
	}
	if exact {
		spec += "." + arch
	}
	return spec
}

// sameRPM reports an exact version. Epoch and release need not be written.
func sameRPM(have, want string) bool {
	want = noEpoch(want)
	if _, rest, ok := strings.Cut(have, ":"); ok && !strings.Contains(want, ":") {
		have = rest
	}
	return have == want || have[:max(0, strings.LastIndex(have, "-"))] == want
}

// compareRPM orders versions as rpm does. Where one has no release, releases are not compared.
func compareRPM(a, b string) int {
	ea, va, ra := splitDebian(a)
	eb, vb, rb := splitDebian(b)
	c := cmp.Or(compareDigits(ea, eb), compareRPMPart(va, vb))
	if c == 0 && ra != "" && rb != "" {
		return compareRPMPart(ra, rb)
	}
	return c
}

// compareRPMPart compares runs of digits and of letters in turns; what stands between them only parts them. A ~ is
// before everything, even the end, a ^ after the end and before everything else, and a number is after letters.
func compareRPMPart(a, b string) int {
	for {
		a, b = strings.TrimLeftFunc(a, parting), strings.TrimLeftFunc(b, parting)
		if c, done := compareMarks(&a, &b); done {
			return c
		}
		if a == "" || b == "" {
			return cmp.Compare(len(a), len(b))
		}
		digits := isDigit(rune(a[0]))
		if digits != isDigit(rune(b[0])) {
			return map[bool]int{true: 1, false: -1}[digits]
		}
		var sa, sb string
		sa, a = rpmRun(a, digits)
		sb, b = rpmRun(b, digits)
		c := cmp.Compare(sa, sb)
		if digits {
			c = compareDigits(sa, sb)
		}
		if c != 0 {
			return c
		}
	}
}

// compareMarks compares what begins with ~ or ^, and takes the mark away where both have it.
func compareMarks(a, b *string) (int, bool) {
	for _, mark := range []string{"~", "^"} {
		if strings.HasPrefix(*a, mark) && strings.HasPrefix(*b, mark) {
			*a, *b = (*a)[1:], (*b)[1:]
			return compareRPMPart(*a, *b), true
		}
	}
	switch ta, tb := strings.HasPrefix(*a, "~"), strings.HasPrefix(*b, "~"); {
	case ta:
		return -1, true
	case tb:
		return 1, true
	}
	switch ca, cb := strings.HasPrefix(*a, "^"), strings.HasPrefix(*b, "^"); {
	case ca && *b == "", cb && *a != "":
		return 1, true
	case cb && *a == "", ca && *b != "":
		return -1, true
	}
	return 0, false
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func parting(r rune) bool { return !isDigit(r) && !isLetter(r) && r != '~' && r != '^' }

// rpmRun splits a text after its leading digits, or letters.
func rpmRun(s string, digits bool) (string, string) {
	in := isLetter
	if digits {
		in = isDigit
	}
	i := strings.IndexFunc(s, func(r rune) bool { return !in(r) })
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}
