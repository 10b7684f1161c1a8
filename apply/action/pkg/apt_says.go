package pkg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

var (
	aptNoPackage = lazyregexp.New(
		`(?m)^E: (?:Unable to locate package (\S+)|Package '(\S+)' has no installation candidate)`,
	)
	aptNoVersion = lazyregexp.New(`(?m)^E: Version '([^']+)' for '([^']+)' was not found`)
)

// explain makes an error of what apt-get said when it failed: what is unknown with what is known, else its own words.
func (a apt) explain(ctx context.Context, out apply.Output) error {
	if m := aptNoPackage.FindStringSubmatch(out.StdErr); m != nil {
		name := m[1] + m[2]
		known, err := a.known(ctx, name)
		if err != nil {
			return err
		}
		return noPackage(name, known)
	}
	if m := aptNoVersion.FindStringSubmatch(out.StdErr); m != nil {
		known, err := a.versions(ctx, m[2])
		if err != nil {
			return err
		}
		return noVersion(m[2], m[1], known)
	}
	return &packageError{aptSays(out), aptBusy(out)}
}

// noPackage is the error of a name that no list has.
func noPackage(name string, known []string) error {
	known = slices.DeleteFunc(known, func(k string) bool { return k == name })
	hint := "are the lists old? add refresh: true"
	if near := render.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q? or are the lists old? add refresh: true", near)
	}
	return fmt.Errorf("there is no package %s in the lists of this host (%s)", name, hint)
}

// noVersion is the error of a version that no list has.
func noVersion(name, version string, known []string) error {
	slices.Reverse(known)
	known = slices.Compact(known)
	hint := "are the lists old? add refresh: true"
	if len(known) > 0 {
		hint = "there is " + strings.Join(known[max(0, len(known)-5):], ", ") + "; are the lists old? add refresh: true"
	}
	return fmt.Errorf("there is no version %s of %s in the lists of this host (%s)", version, name, hint)
}

// Lines of apt and dpkg that say nothing of the cause.
var aptNoise = lazyregexp.New(
	`^(W: |N: |E: Sub-process |E: Some index files failed|E: Failed to fetch .*\bSome index|` +
		`Errors were encountered|debconf: |Extracting templates|dpkg-preconfigure: |Waiting for cache lock|` +
		`Use 'apt|Reading |Building |Preconfiguring |Processing was halted)`,
)

// aptHolder is who has the lock, which apt says while it waits.
var aptHolder = lazyregexp.New(`Could not get lock \S+ It is held by process \d+ \([^)]*\)`)

// maxSaid is how many lines of a cause are told.
const maxSaid = 4

// aptSays is the cause in what apt and dpkg said: the lines of errors, with what a package's own script said before.
func aptSays(out apply.Output) string {
	var said []string
	if _, unmet, ok := strings.Cut(out.StdOut, "The following packages have unmet dependencies:\n"); ok {
		for line := range strings.Lines(unmet) {
			if !strings.HasPrefix(line, " ") {
				break
			}
			said = append(said, strings.Join(strings.Fields(line), " "))
		}
	}
	if holders := aptHolder.FindAllString(out.StdOut, -1); len(holders) > 0 &&
		strings.Contains(out.StdErr, "Unable to acquire") {
		said = append(said, holders[len(holders)-1])
	}
	listing := false // the names behind "Errors were encountered while processing:"
	for line := range strings.Lines(out.StdErr) {
		line = strings.TrimRight(line, " \n\r")
		failed := strings.HasPrefix(line, "W: Failed to fetch") || strings.HasPrefix(line, "W: GPG error")
		listing = strings.HasPrefix(line, "Errors were encountered") || listing && strings.HasPrefix(line, " ")
		if line == "" || listing || !failed && aptNoise.MatchString(line) {
			continue
		}
		line = strings.TrimPrefix(strings.TrimPrefix(line, "E: "), "W: ")
		said = append(said, strings.TrimPrefix(strings.TrimSpace(line), "dpkg: "))
	}
	said = slices.Compact(said)
	if len(said) == 0 {
		return out.Failure()
	}
	return strings.Join(said[max(0, len(said)-maxSaid):], " | ")
}
