package datastore

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	backupTime   = "20060102T150405Z" // in the name of a backup
	plainEnding  = ".tar"
	sealedEnding = ".tar.age"
	firstRetry   = time.Minute // after a backup that failed; twice as long after each further one
	lastRetry    = time.Hour   // at most
	strayAfter   = 24 * time.Hour
)

// untilDue is how long there is to wait for the next backup. A time that is still to come counts as none: the clock was
// wrong then.
func (p Past) untilDue(every time.Duration, now time.Time) time.Duration {
	due, retry := now, now
	if p.Last.Name != "" && !p.Last.At.After(now) {
		due = p.Last.At.Add(every)
	}
	if p.Failed.Times > 0 && !p.Failed.At.After(now) {
		retry = p.Failed.At.Add(min(every, lastRetry, firstRetry<<min(p.Failed.Times-1, 10)))
	}
	return max(0, due.Sub(now), retry.Sub(now))
}

// backupName is the file of a backup.
func backupName(fleet string, sealed bool, now time.Time) string {
	name := fleet + "-" + now.UTC().Format(backupTime)
	if sealed {
		return name + sealedEnding
	}
	return name + plainEnding
}

// surplus are the files of a directory that are too many: the backups beyond the newest ones, and what a kill left of
// one that was being written. Fresh was written just now and stays, also where a clock went back. Files with other
// names are not pullet's.
func surplus(names []string, fleet, fresh string, keep int, now time.Time) (remove []string) {
	form := regexp.MustCompile(`^(\.?)` + regexp.QuoteMeta(fleet) + `-(\d{8}T\d{6}Z)\.tar(?:\.age)?(\d*)$`)
	kept := []string{fresh}
	times := map[string]string{}
	for _, name := range names {
		m := form.FindStringSubmatch(name)
		if m == nil || name == fresh || (m[1] == "") != (m[3] == "") {
			continue
		}
		at, err := time.Parse(backupTime, m[2])
		switch {
		case err != nil:
		case m[1] == "":
			times[name], kept = m[2], append(kept, name)
		case now.Sub(at) > strayAfter: // another host may write a younger one
			remove = append(remove, name)
		}
	}
	slices.SortFunc(kept[1:], func(a, b string) int { return strings.Compare(times[b]+b, times[a]+a) })
	return append(remove, kept[min(len(kept), keep):]...)
}
