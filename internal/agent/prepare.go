package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Proposal is a version that an operator wants, as this node sees it: it exists, it compiles here, and it follows the
// fleet's.
type Proposal struct {
	Version   state.Version
	Current   *state.Version   // the fleet's; nil when it has none
	Seen      int64            // the revision at which that was read
	Rollout   render.Rollout   // the rules of the version, with its instructions
	Inventory render.Inventory // its nodes that must exist
}

// Prepare checks a version that an operator names by its revisions, one for the only repository or NAME=REV for each
// that is not to stay where it is. Nothing is written in the fleet's record.
func (a *Agent) Prepare(
	ctx context.Context,
	store *state.Store,
	revs []string,
	instructions Instructions,
) (*Proposal, error) {
	record, err := instructions.record()
	if err != nil {
		return nil, err
	}
	current, seen, err := store.Versions.Current(ctx)
	if err != nil && lock.Unreadable("", err) == nil { // one that cannot be read is replaced
		return nil, err
	}
	p := a.pull(ctx, Options{})
	p.opened(store)
	p.reads(current)
	heads, err := p.agreement.named(ctx, revs)
	if err != nil {
		return nil, err
	}
	if err := p.agreement.follows(ctx, heads); err != nil {
		return nil, err
	}
	v := state.Version{
		ID:           puller.Version(heads),
		Release:      puller.Release(heads),
		At:           time.Now().UTC(),
		Held:         true,
		Asked:        revs,
		Instructions: instructions.Text,
	} // as it was given: messages have its lines and columns
	for _, h := range heads {
		v.Commits = append(v.Commits, state.Commit{Repo: h.Repo, Commit: h.Commit, Tag: h.Tag})
	}
	if current != nil {
		v.Previous, v.Rewound = current.ID, current.Rewound
		v.Bad = slices.DeleteFunc(slices.Clone(current.Bad), func(id string) bool { return id == v.ID })
		if v.Same(current) { // its rollout goes on
			v.Previous, v.Epoch = current.Previous, current.Epoch
			if record == nil && !instructions.None {
				record, v.Instructions = current.Instructions, current.Instructions
			}
		}
	}
	rules, inventory, err := p.compiler.rules(ctx, &v)
	if err != nil {
		return nil, err
	}
	v.Instructions = record
	p.agreement.describe(ctx, &v)
	v.Canary, v.Listed = rules.HasCanaries(), state.ListedBy(members(inventory))
	return &Proposal{v, current, seen, rules, inventory}, nil
}

// Instructions are rules of one rollout, as an operator gives them. Without any, a rollout that goes on keeps those
// that it has.
type Instructions struct {
	From string // a file, or what else has them: for messages
	Text []byte // JSON
	None bool   // those that the rollout has end
}

// record is what the fleet's record keeps of instructions.
func (i Instructions) record() (json.RawMessage, error) {
	if len(i.Text) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, i.Text); err != nil {
		return nil, fmt.Errorf("instructions: %s is not JSON: %w", i.From, err)
	}
	if out.Len() > state.MaxInstructions {
		return nil, fmt.Errorf("instructions: %s has more than %d KiB", i.From, state.MaxInstructions>>10)
	}
	return out.Bytes(), nil
}

// Rules are the rules and the inventory of a version, as this node's clone has them.
func (a *Agent) Rules(
	ctx context.Context,
	store *state.Store,
	v *state.Version,
) (render.Rollout, render.Inventory, error) {
	p := a.pull(ctx, Options{})
	p.opened(store)
	return p.compiler.rules(ctx, v)
}

func (c *compiler) rules(ctx context.Context, v *state.Version) (render.Rollout, render.Inventory, error) {
	program, err := c.compile(ctx, v)
	var mistakes render.ErrorList
	if errors.As(err, &mistakes) {
		return render.Rollout{}, nil, fmt.Errorf("version %s does not compile on this node:\n%w", v, err)
	}
	if err != nil {
		return render.Rollout{}, nil, err
	}
	rules, err := program.rules(v)
	return rules, program.catalog.Inventory, err
}

// named are the heads that revisions stand for.
func (a *agreement) named(ctx context.Context, revs []string) ([]puller.Head, error) {
	own, err := a.outside.Repositories.Pull(ctx)
	if err != nil {
		return nil, err
	}
	heads := a.stay(own)
	for _, rev := range revs {
		i := 0
		if name, rest, ok := strings.Cut(rev, "="); ok {
			rev, i = rest, slices.IndexFunc(heads, func(h puller.Head) bool { return h.Repo == name })
			if i < 0 {
				return nil, fmt.Errorf("there is no repository %q in the configuration", name)
			}
		} else if len(heads) > 1 {
			return nil, fmt.Errorf("the fleet has several repositories: write NAME=REV, such as %s=%s", heads[0].Repo, rev)
		}
		if heads[i], err = a.outside.Repositories.Resolve(ctx, heads[i].Repo, rev); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// stay are the heads of repositories that nobody names: where the fleet is.
func (a *agreement) stay(own []puller.Head) []puller.Head {
	heads := slices.Clone(own)
	for i, h := range heads {
		if a.current == nil {
			break
		}
		if at, ok := a.current.Commit(h.Repo); ok {
			heads[i] = puller.Head{Repo: at.Repo, Commit: at.Commit, Tag: at.Tag}
		}
	}
	return heads
}

// follows refuses heads that do not come after the fleet's.
func (a *agreement) follows(ctx context.Context, heads []puller.Head) error {
	for _, h := range heads {
		if a.current == nil {
			return nil
		}
		at, ok := a.current.Commit(h.Repo)
		if !ok {
			continue
		}
		relation, err := a.outside.Repositories.Relate(ctx, puller.Head{Repo: at.Repo, Commit: at.Commit, Tag: at.Tag}, h)
		if err != nil {
			return err
		}
		name := state.Version{ID: h.Commit, Release: h.Tag}
		switch relation {
		case puller.Same, puller.Newer:
		case puller.Older:
			return fmt.Errorf(
				"%s is older than the fleet's version, %s: to go back to the last good one, run: pullet rollout undo",
				&name,
				a.current,
			)
		default:
			return fmt.Errorf(
				"%s does not follow from the fleet's version %s: their histories went apart; "+
					"if the branch was rewritten on purpose, take it as it is now: pullet pull --accept-rewind",
				&name,
				a.current,
			)
		}
	}
	return nil
}

// Heads asks every repository for its head, as a pull does.
func (a *Agent) Heads(ctx context.Context) ([]puller.Head, error) {
	return a.outside.Repositories.Pull(ctx)
}
