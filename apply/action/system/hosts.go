package system

import (
	"net/netip"
	"slices"
	"strings"
)

// hostsFile is /etc/hosts line by line. What is not changed is written as it was.
type hostsFile []hostsLine

// hostsLine is a line: "10.0.0.5  db db.example.org  # comment".
type hostsLine struct {
	text  string     // as it stands, with its end
	ip    netip.Addr // invalid for a line that is no entry
	names []string
}

func parseHosts(text string) hostsFile {
	var out hostsFile
	for line := range strings.Lines(text) {
		out = append(out, parseHostsLine(line))
	}
	return out
}

func parseHostsLine(line string) hostsLine {
	entry, _, _ := strings.Cut(line, "#")
	fields := strings.Fields(entry)
	if len(fields) == 0 {
		return hostsLine{text: line}
	}
	ip, err := netip.ParseAddr(fields[0])
	if err != nil {
		return hostsLine{text: line}
	}
	return hostsLine{line, ip, fields[1:]}
}

func (f hostsFile) String() string {
	var b strings.Builder
	for _, line := range f {
		b.WriteString(line.text)
	}
	return b.String()
}

// has reports that the line gives a name, which knows no case.
func (l hostsLine) has(name string) bool {
	return slices.ContainsFunc(l.names, func(n string) bool { return strings.EqualFold(n, name) })
}

// split takes a line apart: its entry without blanks at its end, and what follows: blanks, a comment, the end of the
// line.
func (l hostsLine) split() (entry, rest string) {
	entry, _, _ = strings.Cut(l.text, "#")
	entry = strings.TrimRight(entry, " \t\r\n\v\f")
	return entry, l.text[len(entry):]
}

// add puts names behind those that the line has.
func (l hostsLine) add(names []string) hostsLine {
	entry, rest := l.split()
	return parseHostsLine(entry + " " + strings.Join(names, " ") + rest)
}

// set gives the line exactly these names.
func (l hostsLine) set(names []string) hostsLine {
	entry, rest := l.split()
	first := strings.Fields(entry)[0]
	indent := entry[:strings.Index(entry, first)]
	after := entry[len(indent)+len(first):]
	gap := after[:len(after)-len(strings.TrimLeft(after, " \t"))]
	if gap == "" {
		gap = " "
	}
	return parseHostsLine(indent + first + gap + strings.Join(names, " ") + rest)
}

// without takes names out of the lines that match; a line without names goes.
func (f hostsFile) without(match func(hostsLine) bool, names []string) hostsFile {
	var out hostsFile
	for _, line := range f {
		if !line.ip.IsValid() || !match(line) || !slices.ContainsFunc(names, line.has) {
			out = append(out, line)
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(line.names), func(n string) bool {
			return slices.ContainsFunc(names, func(gone string) bool { return strings.EqualFold(gone, n) })
		})
		if len(rest) > 0 {
			out = append(out, line.set(rest))
		}
	}
	return out
}

// with gives an address these names in its first line, or in a new one at the end. Exact means no others, and no second
// line.
func (f hostsFile) with(ip netip.Addr, names []string, exact bool) hostsFile {
	var missing []string
	for _, name := range names {
		if !slices.ContainsFunc(f, func(l hostsLine) bool { return l.ip == ip && l.has(name) }) {
			missing = append(missing, name)
		}
	}
	var out hostsFile
	done := false
	for _, line := range f {
		switch {
		case line.ip != ip:
			out = append(out, line)
		case exact && done:
			continue
		case exact && !slices.Equal(line.names, names):
			out = append(out, line.set(names))
		case !exact && !done && len(missing) > 0:
			out = append(out, line.add(missing))
		default:
			out = append(out, line)
		}
		done = done || line.ip == ip
	}
	if !done {
		return out.appended(ip.String() + "\t" + strings.Join(names, " ") + "\n")
	}
	return out
}

// appended is the file with one more line, after the end of a last one that had none.
func (f hostsFile) appended(line string) hostsFile {
	if n := len(f); n > 0 && !strings.HasSuffix(f[n-1].text, "\n") {
		f = slices.Clone(f)
		f[n-1].text += "\n"
	}
	return append(f, parseHostsLine(line))
}
