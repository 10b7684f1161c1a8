package pkg

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// readDpkg reads dpkg's database: its status file, and the journal of changes that are not in it yet, which a dpkg that
// was killed leaves.
func readDpkg(h *apply.Host) (pkgSet, error) {
	set := pkgSet{all: map[string][]pkgState{}}
	dir, err := h.Resolve("/var/lib/dpkg")
	if err != nil {
		return set, err
	}
	journal, err := dpkgJournal(dir)
	if err != nil {
		return set, err
	}
	for _, file := range append([]string{filepath.Join(dir, "status")}, journal...) {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // it is merged into the status file while we read
			continue
		}
		if err != nil {
			return set, err
		}
		set.addDpkg(text)
	}
	if self := set.all["dpkg"]; len(self) > 0 {
		set.native = self[0].arch
	}
	return set, set.readAuto(h)
}

var journalName = lazyregexp.New(`^[0-9]+$`)

// dpkgJournal are the files of changes in their order.
func dpkgJournal(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "updates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if journalName.MatchString(e.Name()) {
			out = append(out, filepath.Join(dir, "updates", e.Name()))
		}
	}
	return out, err
}

// addDpkg takes in the packages of a status file. A later one of the same name and architecture replaces an earlier
// one.
func (s pkgSet) addDpkg(text []byte) {
	for fields := range stanzas(text, "Package", "Status", "Version", "Architecture", "Provides") {
		p := dpkgState(fields)
		if p.name == "" {
			continue
		}
		list, known := s.all[p.name], false
		for i := range list {
			if list[i].arch == p.arch {
				list[i], known = p, true
			}
		}
		if !known {
			s.all[p.name] = append(list, p)
		}
	}
}

// dpkgState is what a stanza of the status file says: "hold ok installed" is what is wanted, whether it must be
// installed again, and how far it came.
func dpkgState(fields map[string]string) pkgState {
	p := pkgState{
		name:     fields["Package"],
		arch:     fields["Architecture"],
		version:  fields["Version"],
		provides: provided(fields["Provides"]),
	}
	words := strings.Fields(fields["Status"])
	if len(words) != 3 {
		return p
	}
	p.held = words[0] == "hold"
	switch state := words[2]; {
	case state == "not-installed":
	case state == "config-files":
		p.config = true
	case words[1] != "ok":
		p.installed, p.broken = true, state+", must be installed again"
	case state == "installed" || state == "triggers-pending" || state == "triggers-awaited":
		p.installed = true
	default:
		p.installed, p.broken = true, state
	}
	return p
}

// provided returns the names of a Provides field, "a, b (= 1.0)", with their versions.
func provided(field string) map[string]string {
	if field == "" {
		return nil
	}
	out := map[string]string{}
	for one := range strings.SplitSeq(field, ",") {
		name, version, _ := strings.Cut(strings.TrimSpace(one), "(")
		if name = strings.TrimSpace(name); name != "" {
			out[name] = strings.Trim(version, "= )")
		}
	}
	return out
}

// stanzas are the wanted fields of the paragraphs of a text in the form of Debian's control files. Continued lines are
// left out.
func stanzas(text []byte, wanted ...string) func(func(map[string]string) bool) {
	return func(yield func(map[string]string) bool) {
		fields := map[string]string{}
		for len(text) > 0 {
			var line []byte
			line, text, _ = bytes.Cut(text, []byte("\n"))
			if len(line) == 0 {
				if len(fields) > 0 && !yield(fields) {
					return
				}
				fields = make(map[string]string, len(wanted))
				continue
			}
			for _, name := range wanted {
				if line[0] == name[0] && len(line) > len(name) && line[len(name)] == ':' &&
					string(line[:len(name)]) == name {
					fields[name] = string(bytes.TrimSpace(line[len(name)+1:]))
				}
			}
		}
		if len(fields) > 0 {
			yield(fields)
		}
	}
}

// readAuto notes which packages were installed only because others need them.
func (s pkgSet) readAuto(h *apply.Host) error {
	path, err := h.Resolve("/var/lib/apt/extended_states")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for fields := range stanzas(text, "Package", "Architecture", "Auto-Installed") {
		list := s.all[fields["Package"]]
		for i := range list {
			if list[i].arch == fields["Architecture"] || list[i].arch == "all" {
				list[i].auto = fields["Auto-Installed"] == "1"
			}
		}
	}
	return err
}

// unfinished are the packages that an interrupted dpkg left in part.
func (s pkgSet) unfinished() []pkgState {
	var out []pkgState
	for _, list := range s.all {
		for _, p := range list {
			if p.broken != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

// compareDebian orders versions as dpkg does: epoch, upstream version, revision.
func compareDebian(a, b string) int {
	ea, ua, ra := splitDebian(a)
	eb, ub, rb := splitDebian(b)
	return cmp.Or(compareDigits(ea, eb), comparePart(ua, ub), comparePart(ra, rb))
}

func splitDebian(v string) (epoch, upstream, revision string) {
	if e, rest, ok := strings.Cut(v, ":"); ok {
		epoch, v = e, rest
	}
	if i := strings.LastIndex(v, "-"); i >= 0 {
		return epoch, v[:i], v[i+1:]
	}
	return epoch, v, ""
}

// comparePart compares text and numbers in turns. In a text ~ is before everything, even the end, and letters are
// before other characters.
func comparePart(a, b string) int {
	for a != "" || b != "" {
		var ta, tb, na, nb string
		ta, a = span(a, false)
		tb, b = span(b, false)
		for i := range max(len(ta), len(tb)) {
			if c := cmp.Compare(weight(ta, i), weight(tb, i)); c != 0 {
				return c
			}
		}
		na, a = span(a, true)
		nb, b = span(b, true)
		if c := compareDigits(na, nb); c != 0 {
			return c
		}
	}
	return 0
}

// span splits a text after its leading digits, or after what comes before them.
func span(s string, digits bool) (string, string) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r >= '0' && r <= '9') != digits })
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

func weight(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z':
		return int(s[i])
	}
	return int(s[i]) + 256
}

// compareDigits compares numbers of any length.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
