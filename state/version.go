package state

import "time"

// Version is the identity of a snapshot: the commit id, or a digest over several repositories' commits. As the fleet's
// current_version it also says who set it and what it follows.
type Version struct {
	ID       string    `json:"version"`
	Release  string    `json:"release,omitempty"` // the annotated tag on the commit
	Commits  []Commit  `json:"commits"`
	Previous string    `json:"previous,omitempty"`
	Rewound  []Commit  `json:"rewound,omitempty"` // the last rewritten history of each repository that an operator accepted
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Commit is where one state repository is.
type Commit struct {
	Repo   string `json:"repo"`
	Commit string `json:"commit"`
	Tag    string `json:"tag,omitempty"`
	Left   string `json:"left,omitempty"` // of an accepted rewrite: the commit that was left for this one
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
