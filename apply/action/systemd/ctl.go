package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// systemctl is the way to units by the command of that name: where there is no bus, and for what only the command can
// do.
type systemctl struct{ h *apply.Host }

func (c systemctl) close() {}

// run runs systemctl on the host, or on the files below its root.
func (c systemctl) run(ctx context.Context, args ...string) (apply.Output, error) {
	line := []string{"systemctl", "--no-pager", "--no-ask-password"}
	if !c.h.IsMachine() {
		line = append(line, "--root="+c.h.Root)
	}
	return c.h.Run(ctx, apply.Command{Args: append(line, args...)})
}

// must is run for what has to succeed.
func (c systemctl) must(ctx context.Context, args ...string) (apply.Output, error) {
	out, err := c.run(ctx, args...)
	switch {
	case err != nil:
		return out, err
	case out.ExitCode == 0:
		return out, nil
	case refused(out.StdErr):
		return out, errNotPermitted
	}
	return out, errors.New(c.clean(apply.LastLines(out)))
}

// refused reports what systemctl says to who may not do it.
func refused(said string) bool {
	return slices.ContainsFunc(
		[]string{"Access denied", "Interactive authentication required", "Permission denied"},
		func(s string) bool {
			return strings.Contains(said, s)
		},
	)
}

// clean makes paths below a root those that the host sees.
func (c systemctl) clean(said string) string {
	if c.h.IsMachine() {
		return strings.TrimSpace(said)
	}
	return strings.TrimSpace(strings.ReplaceAll(said, strings.TrimSuffix(c.h.Root, "/")+"/", "/"))
}

func (c systemctl) show(ctx context.Context, name string) (map[string]string, error) {
	out, err := c.must(ctx, "show", "--property="+strings.Join(unitProperties, ","), "--", name)
	if err != nil {
		return nil, err
	}
	return parseProperties(out.StdOut), nil
}

// parseProperties reads lines of KEY=VALUE.
func parseProperties(text string) map[string]string {
	p := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "="); found {
			p[key] = value
		}
	}
	return p
}

// fileState takes the word, whatever the exit code: that says whether the unit is enabled.
func (c systemctl) fileState(ctx context.Context, name string) (string, error) {
	out, err := c.run(ctx, "is-enabled", "--", name)
	if err != nil {
		return "", err
	}
	word := strings.TrimSpace(out.StdOut)
	if i := strings.LastIndexByte(word, '\n'); i >= 0 {
		word = word[i+1:]
	}
	gone := strings.Contains(out.StdErr, "No such file") || strings.Contains(out.StdErr, "does not exist")
	switch {
	case word == "not-found" || word == "" && gone:
		return "", nil
	case word == "" && refused(out.StdErr):
		return "", errNotPermitted
	case word == "":
		return "", errors.New(c.clean(apply.LastLines(out)))
	}
	return word, nil
}

func (c systemctl) files(ctx context.Context) ([]string, error) {
	out, err := c.must(ctx, "list-unit-files", "--no-legend", "--plain")
	if err != nil && (out.ExitCode <= 0 || out.StdErr != "") { // it fails in silence where there are none
		return nil, err
	}
	var names []string
	for line := range strings.Lines(out.StdOut) {
		if f := strings.Fields(line); len(f) > 0 {
			names = append(names, f[0])
		}
	}
	return names, nil
}

func (c systemctl) manage(ctx context.Context, verb, name string, runtime bool) (string, error) {
	args := []string{verb}
	if runtime {
		args = append(args, "--runtime")
	}
	if name != "" {
		args = append(args, "--", name)
	}
	out, err := c.must(ctx, args...)
	return c.clean(out.StdErr), err // it tells of links there
}

// jobWords are what systemctl says of a job that was not done, with systemd's word for it.
var jobWords = []struct{ said, result string }{
	{"A dependency job for", "dependency"},
	{"Job for %s canceled", "canceled"},
	{"Assertion failed on job", "assert"},
	{"Job for %s failed", "failed"},
}

func (c systemctl) job(ctx context.Context, verb, name string) (string, error) {
	out, err := c.must(ctx, verb, "--", name)
	if err == nil {
		return "done", nil
	}
	for _, w := range jobWords {
		if strings.Contains(out.StdErr, strings.Replace(w.said, "%s", name, 1)) {
			return w.result, nil
		}
	}
	return "", err
}

// offline is the way to units where systemd does not run: below another root, in a container, in a chroot. They can be
// enabled and masked, which systemctl does in their files.
type offline struct{ systemctl }

// show finds the unit's file.
func (o offline) show(ctx context.Context, name string) (map[string]string, error) {
	p := map[string]string{"Id": name, "LoadState": "loaded"}
	for _, file := range slices.Compact([]string{name, unitTemplate(name)}) {
		for _, dir := range unitDirs {
			at, err := o.h.Path(path.Join(dir, file))
			if file == "" || err != nil || !hostfile.Exists(at) {
				continue
			}
			p["FragmentPath"] = path.Join(dir, file)
			if target, err := os.Readlink(at); err == nil && path.Ext(target) == path.Ext(name) {
				p["Id"] = path.Base(target)
			}
			return p, nil
		}
	}
	state, err := o.fileState(ctx, name)
	if err == nil && state == "" { // else one of SysV, which has another file
		p["LoadState"] = "not-found"
	}
	return p, err
}

func (o offline) job(_ context.Context, verb, name string) (string, error) {
	return "", fmt.Errorf(
		"systemd does not run here (a container or a chroot?), so it cannot %s %s: manage only enabled and masked on "+
			"such a host",
		verb,
		name,
	)
}

// manage needs nothing to be read anew where nothing runs.
func (o offline) manage(ctx context.Context, verb, name string, runtime bool) (string, error) {
	if verb == "daemon-reload" || verb == "reset-failed" {
		return "", nil
	}
	return o.systemctl.manage(ctx, verb, name, runtime)
}
