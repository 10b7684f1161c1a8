package main

import (
	"testing"

	"github.com/pullet/pullet/render"
)

// TestGithubLine: the name of a file cannot add properties to a workflow command of GitHub, nor start another one.
func TestGithubLine(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"jobs/a.yaml":           "::warning file=jobs/a.yaml,line=1,col=2::100%25 (fix it)",
		"a,line=9::b%0A":        "::warning file=a%2Cline=9%3A%3Ab%250A,line=1,col=2::100%25 (fix it)",
		"a\r\n::error file=b::": "::warning file=a%0D%0A%3A%3Aerror file=b%3A%3A,line=1,col=2::100%25 (fix it)",
	} {
		m := &render.Error{
			Pos: render.Position{File: name, Line: 1, Col: 2}, Severity: render.Warning, Message: "100%", Hint: "fix it",
		}
		if got := githubLine(m); got != want {
			t.Errorf("%q:\n got %s\nwant %s", name, got, want)
		}
	}
}
