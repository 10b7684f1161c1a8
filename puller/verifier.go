package puller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pullet/pullet/internal/trust"
)

// verifier looks at the signatures of one commit and its history.
type verifier struct {
	repo        string
	policy      Verify
	mode        string
	store       *store
	authorities authorities
	trusted     []plumbing.Hash // with all their history; the last one was verified last
	now         time.Time

	looked  bool                        // at a signature
	when    map[plumbing.Hash]time.Time // the place of a commit in time
	signers map[plumbing.Hash]trust.Signer
}

// newVerifier prepares a look at signatures, with the host's keys as they are now.
func newVerifier(src Source, st *store, rec record) (*verifier, error) {
	v := &verifier{
		repo:    src.Name,
		policy:  src.Verify,
		mode:    src.verifyMode(),
		store:   st,
		now:     time.Now(),
		when:    map[plumbing.Hash]time.Time{},
		signers: map[plumbing.Hash]trust.Signer{},
	}
	v.authorities = authorities{store: st, policy: src.Verify, known: map[[3]plumbing.Hash]authority{}}
	if err := v.authorities.readHost(); err != nil {
		return nil, fmt.Errorf("repository %q: cannot read who may sign: %w", src.Name, err)
	}
	for _, id := range append([]string{src.Verify.Since}, rec.Verified.in(v.mode)...) {
		if commit := plumbing.NewHash(id); id != "" && st.holds(commit) {
			v.trusted = append(v.trusted, commit)
		}
	}
	return v, nil
}

// verify is nil, or an *UnverifiedError.
func (v *verifier) verify(ctx context.Context, commit plumbing.Hash, t tag) error {
	var err error
	switch v.mode {
	case verifyTag:
		err = v.tag(commit, t)
	case verifyTip:
		err = v.tip(commit)
	default:
		err = v.history(ctx, commit)
	}
	if refused, ok := errors.AsType[*UnverifiedError](err); ok {
		refused.Repo, refused.Head, refused.mode = v.repo, commit.String(), v.mode
		refused.keys = v.policy.files()
		if since := v.policy.Since; since != "" && !slices.Contains(v.trusted, plumbing.NewHash(since)) {
			refused.away = since
		}
		if len(v.trusted) > 0 && v.mode == verifyRange {
			refused.base = v.trusted[len(v.trusted)-1].String()
		}
	}
	return err
}

// tip looks at one commit, and not at its history.
func (v *verifier) tip(commit plumbing.Hash) error {
	c, err := v.store.commit(commit)
	if err != nil {
		return err
	}
	who, err := v.authorities.at(plumbing.ZeroHash)
	if err != nil {
		return err
	}
	return v.commit(linkOf(c), who.keys)
}

// tag looks at an annotated tag. It has to say itself that it is the tag of that name on that commit: a server could
// show the tag of an old release under another name.
func (v *verifier) tag(commit plumbing.Hash, t tag) error {
	if t.id.IsZero() {
		return unverified(commit, "", errors.New("has no tag that is followed"))
	}
	content, err := v.store.object(plumbing.TagObject, t.id, maxCommit)
	if err != nil {
		return err
	}
	made, err := taggedAt(content)
	if err != nil {
		return err
	}
	who, err := v.authorities.at(plumbing.ZeroHash)
	if err != nil {
		return err
	}
	c, err := v.store.commit(commit)
	if err != nil {
		return err
	}
	v.looked = true
	signed := trust.Tag(content)
	_, err = who.keys.Verify(signed, v.inTime(later(made, c.Committer.When)))
	own := fmt.Appendf(nil, "object %s\ntype commit\ntag %s\n", commit, t.name)
	if err == nil && !bytes.HasPrefix(signed.Payload, own) {
		err = errors.New("is the tag of another name or commit: its own text says so")
	}
	return unverified(commit, t.name, err)
}

// taggedAt is when an annotated tag was made, as it says.
func taggedAt(content []byte) (time.Time, error) {
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.TagObject)
	if _, err := o.Write(content); err != nil {
		return time.Time{}, err
	}
	var t object.Tag
	err := t.Decode(o)
	return t.Tagger.When, err
}

// history looks at all commits that the trusted history does not have.
func (v *verifier) history(ctx context.Context, to plumbing.Hash) error {
	commits, err := v.store.commitsSince(ctx, to, v.trusted)
	if err != nil {
		return err
	}
	steps := advances(to, commits)
	fixed, err := v.offLine(steps, commits)
	if err != nil {
		return err
	}
	for _, step := range steps {
		who, err := v.authority(step.from)
		if fixed != nil {
			who, err = *fixed, nil
		}
		if err != nil {
			return err
		}
		if err := v.step(ctx, step, who); err != nil {
			return err
		}
	}
	return nil
}

// offLine is who may sign where the line of first parents does not start at the commit that was verified last: a merge
// the other way round, which could start it at a place where others might sign, also at one that was verified before.
// Then it is who may sign behind the commit that was verified last, for all steps; and rules are refused, since nobody
// can say which of them count.
func (v *verifier) offLine(steps []advance, commits map[plumbing.Hash]*link) (*authority, error) {
	if len(steps) == 0 || len(v.trusted) == 0 {
		return nil, nil
	}
	base := v.trusted[len(v.trusted)-1]
	if steps[0].from == base {
		return nil, nil
	}
	for id := range commits {
		rules, err := v.store.fileAt(id, trust.RulesFile)
		if err != nil {
			return nil, err
		}
		if !rules.IsZero() {
			return nil, unverified(steps[len(steps)-1].own().id, "", fmt.Errorf(
				"has first parents that do not lead to %s, so it is not known which %s counts",
				short(base.String()),
				trust.RulesFile,
			))
		}
	}
	who, err := v.authority(base)
	return &who, err
}

// authority is who may sign behind a commit.
func (v *verifier) authority(commit plumbing.Hash) (authority, error) {
	who, err := v.authorities.at(commit)
	if atFault(err) {
		err = unverified(commit, "", fmt.Errorf("does not say who may sign: %w", err))
	}
	return who, err
}

// step looks at the commits that one step brings. What it says of keys and rules has to be readable, too: the next step
// depends on it.
func (v *verifier) step(ctx context.Context, step advance, who authority) error {
	for _, c := range step.commits {
		if err := errors.Join(ctx.Err(), v.known(ctx, c, v.commit(c, who.keys))); err != nil {
			return err
		}
	}
	if err := v.paths(ctx, step, who.rules); err != nil {
		return err
	}
	_, err := v.authority(step.own().id)
	return err
}

// known lets pass what is refused and belongs to the trusted history all the same: dates can be wrong.
func (v *verifier) known(ctx context.Context, c *link, err error) error {
	if err == nil {
		return nil
	}
	for _, base := range v.trusted {
		has, failed := v.store.contains(ctx, base, c.id)
		if has {
			return nil
		}
		if failed != nil && !errors.Is(failed, errCut) {
			return failed
		}
	}
	return err
}

// commit looks at one signature. A key has to be valid at the commit's place in history: not before the commits that it
// comes after, whatever its own date says. So a key that expired cannot sign what is new.
func (v *verifier) commit(c *link, keys *trust.Keys) error {
	when := c.when
	for _, id := range c.parents {
		parent, known := v.when[id]
		if !known {
			if c, err := v.store.commit(id); err == nil {
				parent = c.Committer.When
			}
		}
		when = later(when, parent)
	}
	v.when[c.id] = v.inTime(when)
	content, err := v.store.object(plumbing.CommitObject, c.id, maxCommit)
	if err != nil {
		return err
	}
	v.looked = true
	signed, err := trust.Commit(content)
	if err == nil {
		err = v.signed(c.id, keys, signed)
	}
	return unverified(c.id, "", err)
}

// signed records who made a signature.
func (v *verifier) signed(commit plumbing.Hash, keys *trust.Keys, s trust.Signed) error {
	who, err := keys.Verify(s, v.when[commit])
	if err == nil {
		v.signers[commit] = who
	}
	return err
}

// inTime takes a date of the future for now.
func (v *verifier) inTime(when time.Time) time.Time {
	if when.After(v.now) {
		return v.now
	}
	return when
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
