package mount

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply/action/place"
)

// fstabEntry is a line of /etc/fstab: what is mounted where, and how.
type fstabEntry struct {
	device, dir, fstype, options string
	dump, pass                   int
}

// parseFstab reads a line. Comments, blank lines and what is too short to be read are none.
func parseFstab(line string) (fstabEntry, bool) {
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) < 3 || strings.HasPrefix(fields[0], "#") {
		return fstabEntry{}, false
	}
	e := fstabEntry{device: unescaped(fields[0]), dir: cleanDir(unescaped(fields[1])), fstype: unescaped(fields[2])}
	fields = append(fields[3:], "", "", "")
	e.options = unescaped(fields[0])
	e.dump, e.pass = fstabNumber(fields[1]), fstabNumber(fields[2])
	return e, true
}

// cleanDir is a mount point in the one form that is compared. What is no path, such as that of swap, stays.
func cleanDir(dir string) string {
	if path.IsAbs(dir) {
		return path.Clean(dir)
	}
	return dir
}

// fstabNumber is one of the last two fields: missing is 0, and what is no number is like none.
func fstabNumber(text string) int {
	if text == "" || strings.HasPrefix(text, "#") {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// fields are the entry as it stands in the file.
func (e fstabEntry) fields() []string {
	return []string{
		escaped(e.device),
		escaped(e.dir),
		escaped(e.fstype),
		escaped(e.options),
		strconv.Itoa(e.dump),
		strconv.Itoa(e.pass),
	}
}

func (e fstabEntry) line() string { return strings.Join(e.fields(), "\t") }

// escaped is a text without what separates fields.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`, "\r", `\015`).Replace(text)
	if strings.HasPrefix(text, "#") {
		return `\043` + text[1:]
	}
	return text
}

// unescaped reads the octal escapes of the kernel's tables and of /etc/fstab.
func unescaped(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// findFstab is the entry of a mount point, and the index of its line; -1 where there is none. Which of two counts would
// be a guess.
func findFstab(lines []string, dir string) (fstabEntry, int, error) {
	found, at := fstabEntry{}, -1
	for i, line := range lines {
		e, ok := parseFstab(line)
		switch {
		case !ok || e.dir != dir:
		case at >= 0:
			return fstabEntry{}, -1, fmt.Errorf(
				"/etc/fstab has two entries for %s, in lines %d and %d: remove one of them",
				dir,
				at+1,
				i+1,
			)
		default:
			found, at = e, i
		}
	}
	return found, at, nil
}

// setFstab is the text with this entry, every other line as it was, and the entry that was there.
func setFstab(text string, want fstabEntry) (changed string, have fstabEntry, err error) {
	lines := strings.Split(text, "\n")
	have, at, err := findFstab(lines, want.dir)
	switch {
	case err != nil:
		return "", have, err
	case at < 0:
		return place.WithLine(text, want.line()), have, nil
	case have == want:
		return text, have, nil
	}
	lines[at] = withFields(lines[at], want.fields())
	return strings.Join(lines, "\n"), have, nil
}

// withFields puts fields into a line, with the blanks that are there, and with what follows the last.
func withFields(line string, fields []string) string {
	var out strings.Builder
	end := 0
	for _, at := range regexp.MustCompile(`[^ \t]+`).FindAllStringIndex(line, len(fields)) {
		if line[at[0]] == '#' { // a comment behind a short entry
			break
		}
		out.WriteString(line[end:at[0]] + fields[0])
		end, fields = at[1], fields[1:]
	}
	for _, f := range fields {
		out.WriteString("\t" + f)
	}
	return out.String() + line[end:]
}

// withoutFstab is the text without the entries of a mount point.
func withoutFstab(text, dir string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if e, ok := parseFstab(strings.TrimSuffix(line, "\n")); !ok || e.dir != dir {
			out.WriteString(line)
		}
	}
	return out.String()
}
