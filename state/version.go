package state

import (
	"encoding/json"
	"strconv"
	"time"
)

// Version is the identity of a snapshot: the commit id, or a digest over several repositories' commits. As the fleet's
// current_version it also says who set it and what it follows.
type Version struct {
	ID       string   `json:"version"`
	Release  string   `json:"release,omitempty"` // the annotated tag on the commit
	Commits  []Commit `json:"commits"`
	Previous string   `json:"previous,omitempty"`
	// the last rewritten history of each repository that an operator accepted
	Rewound []Commit  `json:"rewound,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`

	Seq int `json:"seq,omitempty"` // of the fleet's versions in their order

	// Epoch tells the rollouts of a version apart that was set again, after the fleet had left it.
	Epoch int `json:"epoch,omitempty"`
	// Held keeps the fleet at this version: nobody proposes a newer one, before Until where that is set.
	Held  bool      `json:"held,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Hold is the key on a lease that ends with Until: etcd counts the time, and not the clock of a host.
	Hold string `json:"hold,omitempty"`
	// Asked are the revisions that an operator named for it: what a branch was at then.
	Asked []string `json:"asked,omitempty"`
	// Reason is why an operator set it.
	Reason string `json:"reason,omitempty"`
	// Bad are versions that halted or were undone: following never proposes them again.
	Bad []string `json:"bad,omitempty"`
	// Proven: every node ran it in an earlier rollout, so nobody watches its canaries again.
	Proven bool `json:"proven,omitempty"`
	// Canary: canaries go first, and newer commits wait for them.
	Canary bool `json:"canary,omitempty"`
	// Instructions are rules of this rollout that stand in for the repository's, as rollout start was given them.
	Instructions json.RawMessage `json:"instructions,omitempty"`

	// Listed is its inventory, for who proposes it. It is recorded apart.
	Listed Listed `json:"-"`
}

// MaxInstructions is how many bytes the instructions of a version may have.
const MaxInstructions = 64 << 10

// Rollout names the fleet's move to this version: what was frozen, halted or opened in an earlier move is not this
// one's.
func (v *Version) Rollout() string {
	if v.Epoch == 0 {
		return v.ID
	}
	return v.ID + "." + strconv.Itoa(v.Epoch)
}

// Commit is where one state repository is.
type Commit struct {
	Repo   string `json:"repo"`
	Commit string `json:"commit"`
	Tag    string `json:"tag,omitempty"`
	Left   string `json:"left,omitempty"` // of an accepted rewrite: the commit that was left for this one

	// Subject and Author are as the commit has them, for people: who proposes a version has it in its clone, others may
	// not. Each is one line of MaxSubject bytes at most.
	Subject string `json:"subject,omitempty"`
	Author  string `json:"author,omitempty"`
}

// MaxSubject is how much of a commit's subject, or of its author's name, the fleet's record has.
const MaxSubject = 120

// String is the commit in a line: its short id, and whose it is where that is known.
func (c Commit) String() string {
	out := "commit " + Short(c.Commit)
	if c.Author != "" {
		out += " by " + c.Author
	}
	if c.Subject != "" {
		out += ": " + c.Subject
	}
	return out
}

// Described are the commits of a version in a line each, with the names of the repositories where there are several.
func (v *Version) Described() []string {
	var out []string
	for _, c := range v.Commits {
		line := c.String()
		if len(v.Commits) > 1 {
			line = c.Repo + ": " + line
		}
		out = append(out, line)
	}
	return out
}

// Commit is where a repository is in this version.
func (v *Version) Commit(repo string) (Commit, bool) { return find(v.Commits, repo) }

// RewoundTo is the commit of the last accepted rewrite of a repository's history.
func (v *Version) RewoundTo(repo string) (Commit, bool) { return find(v.Rewound, repo) }

func find(commits []Commit, repo string) (Commit, bool) {
	for _, c := range commits {
		if c.Repo == repo {
			return c, true
		}
	}
	return Commit{}, false
}

// String is the release, or the short commit id.
func (v *Version) String() string {
	switch {
	case v == nil || v.ID == "":
		return "none"
	case v.Release != "":
		return v.Release
	}
	return Short(v.ID)
}

// Short is the part of a version that people read.
func Short(id string) string { return id[:min(len(id), 8)] }

// Same reports two versions with the same commits.
func (v *Version) Same(o *Version) bool { return v != nil && o != nil && v.ID == o.ID }
