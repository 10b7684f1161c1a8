package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/ownfile"
)

// TestJoinRefusesOthersFiles: nothing is placed where somebody else can write, and that is said before a token is used.
func TestJoinRefusesOthersFiles(t *testing.T) {
	t.Parallel()
	home, others := t.TempDir(), t.TempDir()
	for _, dir := range []string{home, others} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(home, "pullet.yaml")
	if _, err := Join(file, "/", false); !byOthers(err) {
		t.Error(err)
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := Join(file, "/", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(others, filepath.Join(home, "fleet")); err != nil {
		t.Fatal(err)
	}
	if err := j.Place(answerFor(t, j, "fleet: prod")); !byOthers(err) {
		t.Error(err)
	}
	if left, err := os.ReadDir(others); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func byOthers(err error) bool {
	_, is := errors.AsType[*ownfile.RefusedError](err)
	return is
}

// TestJoinHostileAnswer: an answer whose configuration is invalid does nothing worse than fail.
func TestJoinHostileAnswer(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for _, name := range strings.Split("bcdefghij", "") {
		before := string(name[0] - 1)
		bomb += name + ": &" + name + " [*" + strings.Repeat(before+", *", 8) + before + "]\n"
	}
	for what, text := range map[string]string{"nothing": "", "null": "null", "a list": "[]", "no YAML": "{", "a bomb": bomb} {
		j, err := Join(filepath.Join(t.TempDir(), "pullet.yaml"), "/", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Place(answerFor(t, j, text)); err == nil {
			t.Error(what, " was placed")
		}
		if _, err := os.Stat(j.path(JoinedFile)); err == nil {
			t.Error(what, ": the host counts as joined")
		}
	}
}

// answerFor is the answer of a door to somebody who joins as a node.
func answerFor(t *testing.T, j *Joining, configuration string) authority.Answer {
	t.Helper()
	a, err := authority.Create("prod", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	who := authority.Subject{Fleet: "prod", Name: "web1", Kind: authority.Node}
	chain, err := a.Issue(j.Request, who, nil, authority.DefaultLife, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return authority.Answer{
		Name: "web1", Fleet: "prod", Certificate: string(chain), Bundle: string(a.Bundle()), Configuration: configuration,
		Files: map[string][]byte{"key": []byte("x")},
	}
}
