package puller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/gitremote"
)

// Puller follows a list of sources. Its methods may be called from several
// goroutines, and several processes may share a directory; all but the reading
// of snapshots take turns.
type Puller struct {
	mu    sync.Mutex
	dir   string
	lock  *flock.Flock // of dir, against other processes
	repos []*repository
	log   *logrus.Entry
}

// Open checks the sources, and reports all mistakes at once, then brings the
// stores in dir into order, unless another process is at work there: then the
// first turn does. What is damaged there is an error of the first turn: a host
// that opens them can tell the fleet of it by then. Open does not use the
// network. It creates dir with mode 0700. The limits are those of each fetch.
func Open(dir string, sources []Source, limits gitremote.Limits, log *logrus.Entry) (*Puller, error) {
	if err := checkSources(sources); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the directory for repositories: %w", err)
	}
	p := &Puller{dir: dir, lock: newLock(dir), log: log}
	mine, err := p.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock the repositories: %w", err)
	}
	client := gitremote.Client{Scratch: scratch(dir), Limits: limits}
	for _, src := range sources {
		r := newRepository(filepath.Join(dir, src.Name), src, client, log)
		if mine {
			_ = r.catchUp() // what fails now fails in the first turn, too, and that tells
		}
		p.repos = append(p.repos, r)
	}
	if err := p.lock.Unlock(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close releases the stores. Snapshots cannot be read afterwards.
func (p *Puller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, r := range p.repos {
		errs = append(errs, r.store.close())
	}
	return errors.Join(errs...)
}

// Pull asks every remote for its head and fetches what is new. It returns one
// head for each source, in order, each the remote's own or, with a Problem,
// the last good one. Where nothing is new it costs one listing a source. It
// fails only where a repository has no good commit at all, or when ctx ends.
func (p *Puller) Pull(ctx context.Context) ([]Head, error) {
	over, err := p.turn(ctx)
	if err == nil {
		defer over()
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("pulling was stopped: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	var heads []Head
	var errs []error
	for _, r := range p.repos {
		began := time.Now()
		head, err := r.pull(ctx)
		head.Took = time.Since(began)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("pulling was stopped: %w", context.Cause(ctx))
		}
		heads, errs = append(heads, head), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return heads, nil
}

// pull is Pull for one repository.
func (r *repository) pull(ctx context.Context) (Head, error) {
	l, err := r.advance(ctx)
	if err != nil && r.rec.Commit == "" {
		return Head{}, err
	}
	h := Head{Repo: r.src.Name, Commit: r.rec.Commit, Tag: r.rec.Tag, Problem: err}
	if err == nil {
		h.LeftOut = r.src.leftOut(l, h.Tag)
	}
	return h, nil
}

// advance moves the last good head to what the remote offers, if it may.
func (r *repository) advance(ctx context.Context) (listing, error) {
	now := time.Now()
	l, o, err := r.list(ctx)
	if err != nil {
		return l, err
	}
	if o.commit != r.rec.Commit || !r.store.holds(o.hash()) {
		if _, err := r.obtain(ctx, o, tag{}, o.hash()); err != nil {
			return l, r.failed(o, err)
		}
	}
	if err := r.checkHistory(ctx, o); err != nil {
		return l, r.refuse(o, err)
	}
	if err := r.verify(ctx, o.hash(), tag{name: o.tag, id: o.tagID}); err != nil {
		return l, r.failed(o, err)
	}
	return l, r.trust(o, now)
}

// failed says what kind of failure it is that an offer could not be taken.
func (r *repository) failed(o offer, err error) error {
	_, local := errors.AsType[*fs.PathError](err)
	unreachable, asked := errors.AsType[*UnreachableError](err)
	unsigned, refused := errors.AsType[*UnverifiedError](err)
	switch {
	case asked:
		return unreachable
	case refused:
		return unsigned
	case atFault(err):
		return &UnusableError{Repo: r.src.Name, Commit: o.commit, Err: err}
	case local:
		return fmt.Errorf("repository %q: cannot store commit %s: %w", r.src.Name, short(o.commit), err)
	}
	return r.src.unreachable(fmt.Errorf("fetching %s: %w", short(o.commit), err))
}

// refuse records what only an operator can let pass.
func (r *repository) refuse(o offer, cause error) error {
	if !refused(cause) {
		return r.failed(o, cause)
	}
	next := r.rec
	next.Refused = &refusal{Commit: o.commit, Tag: o.tag}
	if r.rec.Refused != nil && *r.rec.Refused == *next.Refused {
		return cause
	}
	if err := r.save(next); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// refused reports what only Accept lets pass.
func refused(err error) bool {
	_, rewritten := errors.AsType[*RewrittenError](err)
	_, behind := errors.AsType[*BehindError](err)
	return rewritten || behind
}

// trust makes an offer the last good head, which was seen at a time.
func (r *repository) trust(o offer, seen time.Time) error {
	next := r.rec
	if r.src.Verify.on() {
		if !next.sameRemote(r.src) || next.Commit != o.commit {
			next.Seen = time.Time{}
		}
		next.see(seen)
	}
	if next.Follow != r.src.follow() {
		next.Tags = nil
	}
	next.URL, next.Follow = r.src.remote().Redacted(), r.src.follow()
	next.setGood(o.commit, o.tag, r.src.tagged())
	return r.save(next)
}

// save writes the record if it changed.
func (r *repository) save(next record) error {
	if next.equal(r.rec) {
		return nil
	}
	if err := next.write(r.recordFile); err != nil {
		return err
	}
	r.rec = next
	return nil
}

// Accept lets pass what the latest Pull refused for a repository: a rewritten
// history, a moved or deleted tag, a branch that went back. The commit, a full
// id, becomes the last good one, and who let it pass is recorded. Nothing else
// can be accepted.
func (p *Puller) Accept(ctx context.Context, repo, commit, by string) error {
	over, err := p.turn(ctx)
	if err != nil {
		return err
	}
	defer over()
	r, err := p.repository(repo)
	if err != nil {
		return err
	}
	refused := r.rec.Refused
	if refused == nil || refused.Commit != commit {
		return fmt.Errorf(
			"cannot accept commit %s of repository %q: it is not what the latest pull refused; see what it refuses: pullet pull",
			short(commit),
			repo,
		)
	}
	next := r.rec
	next.Rewinds = append(next.Rewinds[:len(next.Rewinds):len(next.Rewinds)],
		rewind{Time: time.Now().UTC(), From: r.rec.Commit, To: commit, By: by})
	next.setGood(commit, refused.Tag, r.src.tagged())
	if err := r.save(next); err != nil {
		return err
	}
	r.log.Warnf("%s accepted the step from %s to %s", by, short(next.Rewinds[len(next.Rewinds)-1].From), short(commit))
	return nil
}

// Relate says what the head to is, seen from the head from of the same
// repository: Newer if it comes after it. Tags are compared by version, where
// the source follows tags and both heads have one; everything else by
// ancestry. It asks the remote only for commits or history that the store
// lacks. Unknown without an error means that the remote does not have one of
// the commits either; with one, that it could not be asked.
func (p *Puller) Relate(ctx context.Context, from, to Head) (Relation, error) {
	over, err := p.turn(ctx)
	if err != nil {
		return Unknown, err
	}
	defer over()
	if from.Repo != to.Repo {
		return Unknown, fmt.Errorf("cannot compare heads of the repositories %q and %q", from.Repo, to.Repo)
	}
	r, err := p.repository(from.Repo)
	if err != nil {
		return Unknown, err
	}
	if from.Commit == to.Commit {
		return Same, nil
	}
	if rel, ok := r.src.relateTags(from, to); ok {
		return rel, nil
	}
	for _, h := range []Head{from, to} {
		if err := h.check(); err != nil {
			return Unknown, err
		}
		if r.store.holds(h.hash()) {
			continue
		}
		if _, err := r.fetchCommit(ctx, h); atFault(err) || ctx.Err() != nil {
			return Unknown, err
		} else if err != nil { // the remote does not have it, or cannot be asked: Snapshot says so to who needs it
			return Unknown, nil
		}
	}
	return r.relation(ctx, from.Commit, to.Commit)
}

func (p *Puller) repository(name string) (*repository, error) {
	for _, r := range p.repos {
		if r.src.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no repository %q in the configuration", name)
}

// scratch is where fetches keep what they have not checked yet.
func scratch(dir string) string { return filepath.Join(dir, "incoming") }

// Received is how many bytes the fetches that go on now have received, where a puller works in dir.
func Received(dir string) int64 { return gitremote.Received(scratch(dir)) }
