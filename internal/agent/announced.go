package agent

import (
	"cmp"
	"context"
	"path"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

const (
	searchTime     = 5 * time.Minute  // how long a commit is looked for that was announced
	searchFirst    = 2 * time.Second  // until the next look; it doubles with each
	announcedEvery = 10 * time.Second // at most so often an announcement counts: who makes one up costs few pulls
)

// announce tells the fleet of a push to what its hosts follow. Of others there is nothing to tell.
func (a *Agent) announce(ctx context.Context, push webhook.Push) error {
	for _, source := range a.config.Repositories {
		if source.Name != push.Repository || !follows(source, push.Ref) {
			continue
		}
		store, err := a.connection.isOpen()
		if err != nil {
			return err
		}
		announced := state.Announced{Ref: push.Ref, Commit: push.Commit, At: time.Now().UTC()}
		return store.Explain(store.Bells.Announce(ctx, push.Repository, announced))
	}
	return nil
}

// follows reports a branch or a tag that a source follows, or that may become what it follows.
func follows(source puller.Source, ref string) bool {
	if source.Tag == "" && source.Semver == "" {
		return ref == "refs/heads/"+cmp.Or(source.Ref, "main")
	}
	tag, isTag := strings.CutPrefix(ref, "refs/tags/")
	matches, err := path.Match(source.Tag, tag)
	return isTag && (source.Tag == "" || matches && err == nil)
}

// searches are the commits that were announced and that the repositories do not have yet: a forge tells of a push
// before the commit can be fetched.
type searches struct {
	*self
	connection *connection
	of         map[string]*search // by repository
}

// after is how long it is from a pull to the next one that looks for a commit; 0: none is looked for. The record is
// read when the agent was woken, or while something is looked for.
func (s *searches) after(ctx context.Context, out *Outcome, woken bool) (next time.Duration) {
	store := s.connection.store()
	if store == nil || !woken && !s.on() {
		return 0
	}
	var names []string
	for _, source := range s.config.Repositories {
		names = append(names, source.Name)
	}
	announced, err := store.Bells.Announced(ctx, names)
	if err != nil { // what was announced before is looked for all the same
		s.logger.WithError(err).Debug("what was announced")
	}
	for _, source := range s.config.Repositories {
		one := s.of[source.Name]
		if one == nil {
			one = &search{}
			s.of[source.Name] = one
		}
		var later time.Duration
		if a, ok := announced[source.Name]; ok && follows(source, a.Ref) {
			later = one.hear(a, out.head(source.Name), time.Now())
		}
		again := one.again(out.head(source.Name), time.Now(), s.config.Agent.Interval.Std())
		for _, wait := range []time.Duration{later, again} {
			if wait > 0 && (next == 0 || wait < next) {
				next = wait
			}
		}
	}
	return next
}

// on reports that something is looked for, or has to be heard later.
func (s *searches) on() bool {
	for _, one := range s.of {
		if one.commit != "" || one.waits {
			return true
		}
	}
	return false
}

// search is one for the commit of a repository.
type search struct {
	commit string    // "": it is over
	before string    // the repository's commit when it began
	until  time.Time // when it is given up
	pulls  int       // without the commit

	heard int64     // the revision of the announcement that was heard last
	at    time.Time // when
	waits bool      // another one is to be heard
}

// hear takes an announcement, or says in which time it is to be heard. One that comes during a search takes the place
// of what is looked for, and the pauses go on to grow.
func (s *search) hear(a state.Announced, head string, now time.Time) (later time.Duration) {
	s.waits = false
	if a.Rev == s.heard {
		return 0
	}
	if pause := s.at.Add(announcedEvery).Sub(now); pause > 0 {
		s.waits = true
		return pause
	}
	s.heard = a.Rev
	if now.Sub(a.At).Abs() > searchTime { // of long ago, or by a clock that is off
		return 0
	}
	if s.commit == "" {
		s.before, s.pulls = head, 0
	}
	s.commit, s.at, s.until = a.Commit, now, now.Add(searchTime)
	return 0
}

// again is how long it is until the next pull looks for the commit; 0: the search is over. It ends, too, when the
// repository went on to another commit. A head of "" is one that could not be asked for.
func (s *search) again(head string, now time.Time, most time.Duration) time.Duration {
	if s.before == "" {
		s.before = head
	}
	if head == s.commit || head != "" && head != s.before || now.After(s.until) {
		s.commit = ""
	}
	if s.commit == "" {
		return 0
	}
	s.pulls++
	return min(searchFirst<<min(s.pulls-1, 10), most)
}
