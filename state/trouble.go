package state

import (
	"maps"
	"slices"
	"time"
)

// Trouble is why a node does not follow one of its repositories.
type Trouble struct {
	Kind  WaitKind  `json:"kind"`  // WaitRefused or WaitStale
	Why   string    `json:"why"`   // in words
	Clear string    `json:"clear"` // what helps
	Since time.Time `json:"since"` // when the node saw it first, by its clock
}

// Trouble notes that a repository is not followed; "" is the fleet's version, which the node does not take. It began
// when a trouble of the kind was noted first.
func (l *Local) Trouble(repo string, t Trouble) {
	t.Since = time.Now().UTC().Round(0)
	if before, ok := l.Troubles[repo]; ok && before.Kind == t.Kind {
		t.Since = before.Since
	}
	l.Troubles = maps.Clone(l.Troubles) // records are copied by value
	if l.Troubles == nil {
		l.Troubles = map[string]Trouble{}
	}
	l.Troubles[repo] = t
}

// NoTrouble notes that a repository is followed.
func (l *Local) NoTrouble(repo string) {
	if _, had := l.Troubles[repo]; had {
		l.Troubles = maps.Clone(l.Troubles)
		delete(l.Troubles, repo)
	}
}

// OnlyTroubles forgets those of repositories that the configuration does not name any more.
func (l *Local) OnlyTroubles(repos []string) {
	l.Troubles = maps.Clone(l.Troubles)
	maps.DeleteFunc(
		l.Troubles,
		func(repo string, _ Trouble) bool { return repo != "" && !slices.Contains(repos, repo) },
	)
}

// WorstTrouble is the one to tell first: what is refused before what is only away, in the order of the repositories'
// names, and last the fleet's version, which a node refuses when it refuses the branch.
func (l *Local) WorstTrouble() (worst Trouble, any bool) {
	repos := slices.Sorted(maps.Keys(l.Troubles))
	if len(repos) > 0 && repos[0] == "" {
		repos = append(repos[1:], "")
	}
	for _, repo := range repos {
		if t := l.Troubles[repo]; !any || t.Kind == WaitRefused && worst.Kind != WaitRefused {
			worst, any = t, true
		}
	}
	return worst, any
}
