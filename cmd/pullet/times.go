package main

import (
	"fmt"
	"io"
	"time"
)

// stamp is a time by the clock here, with its zone.
func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// age is the cell of a table for a time: how long ago it was, or with --times absolute when.
func age(w io.Writer, t time.Time) string {
	if t.IsZero() || !lookOf(w).absolute {
		return ago(t)
	}
	return stamp(t)
}

// when says in a sentence when something was: 3m ago, or at a time.
func when(w io.Writer, t time.Time) string {
	if lookOf(w).absolute {
		return "at " + stamp(t)
	}
	return ago(t) + " ago"
}

// during says in a sentence how long something is so: for 3m, or since a time.
func during(w io.Writer, t time.Time) string {
	if lookOf(w).absolute {
		return "since " + stamp(t)
	}
	return "for " + ago(t)
}

// ago is how long since a time, in one unit.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
