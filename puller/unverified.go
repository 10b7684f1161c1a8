package puller

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/trust"
)

// UnverifiedError says that a commit is refused because it, one before it, or the tag on it is not signed as Verify of
// the source demands. Nothing lets it pass but other commits, or another policy on the host.
type UnverifiedError struct {
	Repo   string
	Head   string // full id of the commit that is refused
	Commit string // full id of the one that is at fault
	Tag    string // that is at fault, where tags are verified
	Err    error  // the end of a sentence: "has no signature"

	mode  string // of Verify
	keys  string // where they are listed
	since string // verify.since
	base  string // full id of the commit that was verified last, with its history; "" is none
}

// errSince refuses a commit of another repository, or an older one.
var errSince = errors.New("does not have verify.since in its history")

// unverified is the *UnverifiedError of a cause, which ends a sentence about the commit or the tag; nil without one.
func unverified(commit plumbing.Hash, tag string, cause error) error {
	if cause == nil {
		return nil
	}
	return &UnverifiedError{Commit: commit.String(), Tag: tag, Err: cause}
}

func (e *UnverifiedError) Error() string { return e.What() + "; " + e.Clear() }

// What says what is refused and why, without what helps.
func (e *UnverifiedError) What() string {
	return fmt.Sprintf("repository %q: refused %s: %s", e.Repo, short(e.Head), e.Fault())
}

// Fault says what is wrong with which commit or tag.
func (e *UnverifiedError) Fault() string {
	at := "commit " + short(e.Commit)
	if e.Tag != "" {
		at = fmt.Sprintf("tag %q", e.Tag)
	}
	return fmt.Sprintf("%s %v", at, e.Err)
}

// Clear is what helps.
func (e *UnverifiedError) Clear() string {
	show := "git log --show-signature -1 " + short(e.Commit)
	if e.Tag != "" {
		show = "git tag -v " + e.Tag
	}
	signature, _ := errors.AsType[*trust.SignatureError](e.Err)
	rule, restricted := errors.AsType[*trust.RuleError](e.Err)
	switch {
	case errors.Is(e.Err, errSince):
		return fmt.Sprintf(
			"see whether the server has the right repository: git merge-base --is-ancestor %s %s; or correct verify.since",
			short(e.since),
			short(e.Head),
		)
	case restricted:
		return fmt.Sprintf("have that change signed by %s, or change the rule", strings.Join(rule.Names, " or "))
	case signature != nil && signature.Unlisted:
		return fmt.Sprintf("see who signed: %s; if that key may sign, list it in %s", show, e.keys)
	case e.Tag != "":
		return "see what git says: " + show + "; sign a new release: git tag -s NAME COMMIT"
	case e.mode == verifyTip:
		return "see what git says: " + show + "; push a signed commit"
	case e.base != "":
		return fmt.Sprintf("see what git says: %s; sign what is new, and push: git rebase -S -f %s", show, short(e.base))
	}
	return fmt.Sprintf("see what git says: %s; to trust older history, set verify.since of repository %q", show, e.Repo)
}

func (e *UnverifiedError) Unwrap() error { return e.Err }

// files are where keys are listed.
func (v Verify) files() string {
	var names []string
	for _, name := range []string{v.OpenPGP, v.AllowedSigners} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
