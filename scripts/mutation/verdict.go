package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The package whose tests run the scripts of the command line, and the one that simulates fleets.
const (
	commandLine = "cmd/pullet"
	simulation  = "lock/simulation"
)

// suite is a choice of a package's tests.
type suite struct {
	pkg string
	run string // a pattern of go test -run; "" is all
}

// scripts are those of the command line that a pattern chooses.
func scripts(pattern string) suite { return suite{commandLine, "^TestScripts$/" + pattern} }

// only is one test of the suite; all of it without a name.
func (s suite) only(test string) suite {
	if test != "" {
		s.run = exactly(test)
	}
	return s
}

// exactly is the pattern of one test, which may be a part of another.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// verdict is what a suite says of a program. The zero value: all tests passed.
type verdict struct {
	test string // the first that failed, "" where the output names none
	how  string
}

func (v verdict) failed() bool { return v.how != "" }

func (v verdict) String() string {
	if v.test == "" {
		return "no test by name: it " + v.how
	}
	return v.test + " " + v.how
}

var (
	failure = regexp.MustCompile(`--- FAIL: (\S+)`)
	endless = regexp.MustCompile(`panic: test timed out after .*\n\s+running tests:\n\s+(\S+)`)
)

// verdictOf reads the output of a test program that failed within its limit.
func verdictOf(out string, limit time.Duration) verdict {
	late := fmt.Sprintf("does not end within %v", limit.Round(time.Second))
	if found := endless.FindStringSubmatch(out); found != nil {
		return verdict{found[1], late}
	}
	if found := failure.FindAllStringSubmatch(out, -1); len(found) > 0 {
		return verdict{found[len(found)-1][1], "fails"} // of a test and its parts the parts stand behind it
	}
	if strings.Contains(out, "panic: ") || strings.Contains(out, "fatal error: ") {
		return verdict{how: "panics"}
	}
	return verdict{how: late}
}
