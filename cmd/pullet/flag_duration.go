package main

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pullet/pullet/render"
)

// durationFlag is a flag whose durations are written as in files: also in days (2d) and weeks.
type durationFlag time.Duration

// durationVar adds such a flag.
func durationVar(f *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	f.Var((*durationFlag)(to), name, usage)
}

// Set reads a duration. It takes one below zero, too: the command says from which one on it makes sense.
func (d *durationFlag) Set(text string) error {
	rest, negative := strings.CutPrefix(text, "-")
	read, err := render.ParseDuration(rest)
	if negative {
		read = -read
	}
	*d = durationFlag(read)
	return err
}

// Type names the flag's value in help texts.
func (d *durationFlag) Type() string { return "duration" }

// String returns the duration as help texts show a default.
func (d *durationFlag) String() string { return time.Duration(*d).String() }
