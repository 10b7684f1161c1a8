package system

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// sysctlKey is a parameter's path below /proc/sys, or "" for what cannot be a name. The first separator says how a name
// is written: after a dot, dots and slashes are exchanged.
func sysctlKey(name string) string {
	key := name
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '.' {
		key = exchanged(name)
	}
	parts := strings.Split(key, "/")
	if len(parts) < 2 || strings.HasPrefix(name, "-") || strings.ContainsAny(name, "=*?[]#;\\\x00") ||
		len(strings.Fields(name)) != 1 {
		return ""
	}
	for _, p := range parts {
		if p == "" || p == "." || p == ".." || strings.TrimSpace(p) != p {
			return ""
		}
	}
	return key
}

// sysctlName is how a parameter is written: with dots.
func sysctlName(key string) string { return exchanged(key) }

func exchanged(name string) string { return strings.NewReplacer(".", "/", "/", ".").Replace(name) }

// sysctlDirs are the directories of which the boot reads *.conf. A file of an earlier one hides those of the same name.
func sysctlDirs() []string {
	return []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"}
}

// sysctlLine reads an assignment; "" is no key.
func sysctlLine(line string) (key, value string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || line[0] == ';' {
		return "", ""
	}
	name, value, assigned := strings.Cut(strings.TrimPrefix(line, "-"), "=") // a minus means that a refusal is no error
	if !assigned {
		return "", ""
	}
	return sysctlKey(strings.TrimSpace(name)), strings.TrimSpace(value)
}

// sysctlIn finds the assignment that counts, which is the last one, and the index of its line; -1 where there is none.
func sysctlIn(lines []string, key string) (value string, at int) {
	for i, line := range slices.Backward(lines) {
		if k, v := sysctlLine(line); k == key && k != "" {
			return v, i
		}
	}
	return "", -1
}

// setSysctl is a file's text with this assignment, and the value that stood there.
func setSysctl(text, key, want string) (have, changed string) {
	lines := strings.Split(text, "\n")
	have, at := sysctlIn(lines, key)
	switch {
	case at < 0:
		return "", place.WithLine(text, sysctlName(key)+" = "+want)
	case sameSysctl(have, want):
		return have, text
	}
	lines[at] = sysctlName(key) + " = " + want
	return have, strings.Join(lines, "\n")
}

// sameSysctl compares values as the kernel reads them: by words, and numbers in any base.
func sameSysctl(a, b string) bool { return slices.Equal(sysctlWords(a), sysctlWords(b)) }

func sysctlWords(value string) []string {
	words := strings.Fields(value)
	for i, w := range words {
		kernels := !strings.Contains(w, "_") &&
			!strings.ContainsAny(w[:min(len(w), 3)], "bBoO") // Go reads more than the kernel does
		if n, err := strconv.ParseInt(w, 0, 64); err == nil && kernels {
			words[i] = strconv.FormatInt(n, 10)
		}
	}
	return words
}

// overridden names the file and line that is read after the step's own file at boot and says something else; "" where
// there is none. Nothing comes after /etc/sysctl.conf.
func (a *SysctlPresent) overridden(h *apply.Host) (string, error) {
	if filepath.Dir(a.File) == "/etc" {
		return "", nil
	}
	later, err := sysctlFiles(h)
	if err != nil {
		return "", err
	}
	found := ""
	for _, base := range slices.Sorted(maps.Keys(later)) {
		if base <= filepath.Base(a.File) {
			continue
		}
		file, err := place.ReadText(h, later[base])
		if err != nil {
			return "", err
		}
		value, at := sysctlIn(strings.Split(file.Text, "\n"), a.key)
		switch {
		case at >= 0 && sameSysctl(value, a.want):
			found = ""
		case at >= 0:
			found = fmt.Sprintf("%s:%d", file.Name, at+1)
		}
	}
	return found, nil
}

// sysctlFiles are the files that the boot reads, by their names without the directory.
func sysctlFiles(h *apply.Host) (map[string]string, error) {
	out := map[string]string{}
	for _, dir := range sysctlDirs() {
		path, err := h.Resolve(dir)
		if err != nil {
			return nil, err
		}
		found, err := os.ReadDir(path)
		if err != nil && !hostfile.NotThere(err) {
			return nil, err
		}
		for _, e := range found {
			if _, hidden := out[e.Name()]; !hidden && filepath.Ext(e.Name()) == ".conf" {
				out[e.Name()] = filepath.Join(dir, e.Name())
			}
		}
	}
	return out, nil
}

// orNone is a value in a summary.
func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return strings.Join(strings.Fields(value), " ")
}
