package puller

import "fmt"

// UnreachableError says that a repository could not be read, or does not have
// what is to be followed.
type UnreachableError struct {
	Repo, URL string // URL without secrets
	Try       string // a command that helps
	Err       error
}

func (e *UnreachableError) Error() string { return e.What() + "; " + e.Clear() }

// What says what is wrong, without what helps.
func (e *UnreachableError) What() string {
	return fmt.Sprintf("repository %q: cannot read %s: %v", e.Repo, e.URL, e.Err)
}

// Clear is the command that helps.
func (e *UnreachableError) Clear() string { return "try: " + e.Try }

func (e *UnreachableError) Unwrap() error { return e.Err }

// RewrittenError says that a repository offers something that does not follow
// from the last good commit. Puller.Accept of To lets it pass.
type RewrittenError struct {
	Repo     string
	How      string // what happened, in words
	From, To string // full commit ids: the last good one, the refused one
}

func (e *RewrittenError) Error() string { return e.What() + "; " + e.Clear() }

// What says what is refused, without what helps.
func (e *RewrittenError) What() string {
	return fmt.Sprintf("repository %q: %s: refused to move from %s to %s", e.Repo, e.How, short(e.From), short(e.To))
}

// Clear is the command that accepts it.
func (e *RewrittenError) Clear() string { return "if that is intended: pullet pull --accept-rewind" }

// LeftOutError says that a remote has tags that are newer than the followed one and cannot be followed. Everything goes
// on.
type LeftOutError struct {
	Repo     string
	Followed string   // the tag
	Tags     []string // each with the reason
}

func (e *LeftOutError) Error() string {
	return fmt.Sprintf(
		"repository %q: %s is followed, and newer tags are left out: %s; a release is an annotated tag with a version: "+
			"git tag -a -m MESSAGE NAME COMMIT",
		e.Repo, e.Followed, some(e.Tags),
	)
}

// BehindError says that a branch is at an ancestor of the last good commit.
// Puller.Accept of To lets it pass.
type BehindError struct {
	Repo     string
	From, To string // full commit ids: the last good one, the older one offered
	Unsure   bool   // To is older by its date, and the history between them is not to be had
}

func (e *BehindError) Error() string { return e.What() + "; " + e.Clear() }

// What says what is offered, without what helps.
func (e *BehindError) What() string {
	is, how := "is", "an ancestor of"
	if e.Unsure {
		is, how = "seems to be", "which is older than and not seen to be an ancestor of"
	}
	return fmt.Sprintf(
		"repository %q: the remote %s behind: a stale mirror, or the branch was reset: it offers %s, %s the last good %s",
		e.Repo, is, short(e.To), how, short(e.From),
	)
}

// Clear says which of the two to do what about.
func (e *BehindError) Clear() string {
	return "fix a stale mirror; if the branch was reset on purpose, this takes the whole fleet back: pullet pull " +
		"--accept-rewind"
}

// UnusableError says that a commit holds what pullet does not read, such as a
// submodule or an unsafe path. Nothing lets it pass but another commit.
type UnusableError struct {
	Repo, Commit string // full commit id
	Err          error  // names the path
}

func (e *UnusableError) Error() string { return e.What() + "; " + e.Clear() }

// What says what is refused, without what helps.
func (e *UnusableError) What() string {
	return fmt.Sprintf("repository %q: commit %s cannot be used: %v", e.Repo, short(e.Commit), e.Err)
}

// Clear is what helps.
func (e *UnusableError) Clear() string { return "push a commit that fixes it" }

func (e *UnusableError) Unwrap() error { return e.Err }

// MissingCommitError says that a commit is not in the store, and that its
// remote does not have it or could not be asked.
type MissingCommitError struct {
	Repo, Commit string
	Err          error // why the remote could not help; nil: it does not have it
}

func (e *MissingCommitError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf(
			"commit %s of repository %q is not on this node and could not be fetched: %v",
			short(e.Commit),
			e.Repo,
			e.Err,
		)
	}
	return fmt.Sprintf(
		"commit %s of repository %q is not on this node, and its remote does not offer it: it may not be pushed yet, or "+
			"only to another remote, or its branch was deleted",
		short(e.Commit),
		e.Repo,
	)
}

func (e *MissingCommitError) Unwrap() error { return e.Err }

// CorruptError says that an object of a store cannot be read. The store is
// marked; the next pull builds it anew.
type CorruptError struct {
	Repo string
	What string // the path or object that was wanted
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf(
		"the store of repository %q is damaged: cannot read %s: %v; the next pull rebuilds the store",
		e.Repo,
		e.What,
		e.Err,
	)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// short is a commit id as people write it.
func short(commit string) string { return commit[:min(len(commit), 8)] }
