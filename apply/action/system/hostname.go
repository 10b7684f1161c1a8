package system

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
)

// Hostname is the host's name: in /etc/hostname for the boot, and in the kernel now. Below another root there is only
// the file. Programs that run already may keep the old name until they start again. The name under which pullet knows
// the host is set in its own configuration and does not change with it.
//
// Example:
//
//	steps:
//	  - name: host name
//	    action: system.hostname
//	    parameters: {name: "{{ server.name }}.example.org", hosts: true}
type Hostname struct {
	Name  string `yaml:"name,required"` // letters, digits, hyphens and dots, at most 64
	Hosts bool   `yaml:"hosts"`         // give 127.0.1.1 this name in /etc/hosts too, as Debian has it
}

// Bind checks the name by RFC 1123.
func (a *Hostname) Bind(apply.Binding) error {
	label := `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	if len(a.Name) > 64 || !regexp.MustCompile(`^`+label+`(\.`+label+`)*$`).MatchString(a.Name) {
		return apply.BadParam(
			"name",
			"%q is not a host name: letters, digits and hyphens between dots, at most 64 in all and 63 between dots",
			a.Name,
		)
	}
	return nil
}

// Check compares the kernel's name and the files.
func (a *Hostname) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	var parts, diffs []string
	if have, err := os.Hostname(); h.IsMachine() && (err != nil || have != a.Name) {
		parts = append(parts, fmt.Sprintf("now %s -> %s", orNone(have), a.Name))
	}
	file, err := place.ReadText(h, hostnamePath)
	if err != nil {
		return apply.Change{}, err
	}
	if have := hostnameIn(file.Text); have != a.Name {
		parts = append(parts, fmt.Sprintf("at boot %s -> %s", orNone(have), a.Name))
		diffs = append(diffs, file.Diff(a.Name+"\n"))
	}
	hosts, text, err := a.hosts(h)
	if err != nil {
		return apply.Change{}, err
	}
	if text != hosts.Text {
		parts, diffs = append(parts, "127.0.1.1 in /etc/hosts"), append(diffs, hosts.Diff(text))
	}
	return apply.Change{Summary: strings.Join(parts, ", "), Diff: strings.Join(diffs, "")}, nil
}

// Apply writes the files, then sets the kernel's name. Where that is not allowed, the files are put back.
func (a *Hostname) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, "/etc/hosts")
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	file, err := place.ReadText(h, hostnamePath)
	if err != nil {
		return apply.Output{}, err
	}
	hosts, text, err := a.hosts(h)
	if err != nil {
		return apply.Output{}, err
	}
	undo := func() error { return nil }
	if hostnameIn(file.Text) != a.Name {
		if undo, err = file.Replace(ctx, h, a.Name+"\n"); err != nil {
			return apply.Output{}, err
		}
	}
	if have, err := os.Hostname(); h.IsMachine() && (err != nil || have != a.Name) {
		if err := syscall.Sethostname([]byte(a.Name)); err != nil {
			return apply.Output{}, place.PutBack(
				fmt.Errorf("the kernel does not take %s as the host's name: %w", a.Name, err),
				undo,
			)
		}
	}
	if text != hosts.Text {
		_, err = hosts.Replace(ctx, h, text)
	}
	return apply.Output{State: a.Name}, err
}

// hostnameIn is the name in the text of /etc/hostname, which may have comments.
func hostnameIn(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return ""
}

// hosts is /etc/hosts, and its text with the line of the name: in the place of that of 127.0.1.1, or behind that of
// 127.0.0.1.
func (a *Hostname) hosts(h *apply.Host) (place.Text, string, error) {
	file, err := place.ReadText(h, "/etc/hosts")
	if err != nil || !a.Hosts {
		return file, file.Text, err
	}
	want := []string{"127.0.1.1", a.Name}
	if short, _, qualified := strings.Cut(a.Name, "."); qualified {
		want = append(want, short)
	}
	lines, at, after := strings.Split(file.Text, "\n"), -1, 0
	for i, line := range lines {
		code, _, _ := strings.Cut(line, "#")
		switch fields := strings.Fields(code); {
		case slices.Equal(fields, want):
			return file, file.Text, nil
		case len(fields) > 0 && fields[0] == "127.0.1.1" && at < 0:
			at = i
		case len(fields) > 0 && fields[0] == "127.0.0.1":
			after = i + 1
		}
	}
	line := want[0] + "\t" + strings.Join(want[1:], " ")
	switch {
	case at >= 0:
		lines[at] = line
	case after == len(lines) || file.Text == "": // there is no newline at the end
		return file, place.WithLine(file.Text, line), nil
	default:
		lines = slices.Insert(lines, after, line)
	}
	return file, strings.Join(lines, "\n"), nil
}
