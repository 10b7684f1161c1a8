package datastore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// turnPath is where the agent of this host asks whether its member may be away for a moment.
const turnPath = "/turn"

// awayTTL is how long a host has the turn until it asks again, in seconds: also one that boots, until the others see
// that it is away.
const awayTTL = 60

// turnTime is how long the keeper takes at most to answer an agent that asks for the turn.
const turnTime = 10 * time.Second

// Turn is the answer to a host whose member is to be away for a moment, such as for a restart.
type Turn struct {
	Waits string `json:"waits"` // for what it waits; "": it has the turn
	Node  string `json:"node"`  // the host with the member that does not answer; "": nobody has to act
}

// TakeTurn asks the keeper of this host whether its member may be away now: it may when each other member answers and
// has the record, and no other one was given the turn. Who has it keeps it within a minute, or has it no more. A
// member that does not run is away already, and needs no turn.
func TakeTurn(ctx context.Context, c Config) (t Turn, err error) {
	err = askInside(ctx, c, turnPath, nil, &t)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return Turn{}, nil
	}
	return t, err
}

// KeepTurn keeps the turn for another minute, where this host has it since its member started.
func KeepTurn(ctx context.Context, c Config) error {
	return askInside(ctx, c, turnPath+"?keep", nil, &struct{}{})
}

// GiveTurn gives the turn back, where this host has it.
func GiveTurn(ctx context.Context, c Config) error {
	return askInside(ctx, c, turnPath+"?back", nil, &struct{}{})
}

// turnHandler answers the agent of this host.
func turnHandler(k *keeper) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		// Without a quorum the client of etcd tries for good to keep a lease, and all else waits for the keeper.
		ctx, cancel := context.WithTimeout(r.Context(), turnTime)
		defer cancel()
		switch asked := r.URL.Query(); {
		case asked.Has("back"):
			answer(w, struct{}{}, absence{k}.giveTurn(ctx))
		case asked.Has("keep"):
			answer(w, struct{}{}, absence{k}.keepTurn(ctx))
		default:
			t, err := absence{k}.takeTurn(ctx)
			answer(w, t, err)
		}
	}
}

// absence is the turn of a member to be away for a moment.
type absence struct{ *keeper }

// takeTurn takes the turn before it looks at the others: who had it before may be away since.
func (k absence) takeTurn(ctx context.Context) (Turn, error) {
	if !k.among() {
		return Turn{}, nil
	}
	holder, err := k.store.Datastores.TurnOf(ctx)
	if err != nil {
		return Turn{}, err
	}
	if holder != k.Node {
		if holder, err = k.newTurn(ctx); err != nil {
			return Turn{}, err
		}
	} else if err := k.keepTurn(ctx); errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return Turn{Waits: "this one has the turn since before it started"}, nil
	} else if err != nil {
		return Turn{}, err
	}
	if holder != k.Node {
		return Turn{Waits: holder + " has the turn"}, nil
	}
	t, err := k.unready(ctx)
	if err != nil || t.Waits != "" {
		err = errors.Join(err, k.giveTurn(ctx))
	}
	return t, err
}

func (k absence) keepTurn(ctx context.Context) error {
	_, err := k.store.Client.KeepAliveOnce(ctx, k.turn)
	return err
}

// newTurn takes the turn where nobody has it, and says who has it then.
func (k absence) newTurn(ctx context.Context) (string, error) {
	lease, err := k.store.Client.Grant(ctx, awayTTL)
	if err != nil {
		return "", err
	}
	mine, err := k.store.Datastores.Turn(ctx, k.Node, lease.ID)
	if err == nil && mine {
		k.turn = lease.ID
		return k.Node, nil
	}
	_, _ = k.store.Client.Revoke(ctx, lease.ID) // it ends by itself
	if err != nil {
		return "", err
	}
	holder, err := k.store.Datastores.TurnOf(ctx)
	return cmp.Or(holder, "another one"), err
}

// unready is for what this member waits before it may be away: one of an even number is missed at once.
func (k absence) unready(ctx context.Context) (Turn, error) {
	listed, err := k.store.Client.MemberList(ctx)
	if err != nil {
		return Turn{}, err
	}
	voters := slices.DeleteFunc(listed.Members, func(m *pb.Member) bool { return m.IsLearner })
	if len(voters)%2 == 0 {
		return Turn{Waits: fmt.Sprintf("there are %d, and another one is to come", len(voters))}, nil
	}
	slices.SortFunc(voters, func(a, b *pb.Member) int { return cmp.Compare(a.Name, b.Name) })
	answers := statuses(ctx, k.store.Client, voters)
	var newest uint64
	for _, s := range answers {
		newest = max(newest, s.RaftIndex)
	}
	for _, m := range voters {
		switch s := answers[m.ID]; {
		case s == nil:
			return Turn{m.Name + " does not answer", m.Name}, nil
		case len(s.Errors) > 0: // such as one that the others do not reach: it has no leader
			return Turn{m.Name + ": " + strings.Join(s.Errors, ", "), m.Name}, nil
		case s.RaftAppliedIndex+caughtUp < newest:
			return Turn{Waits: fmt.Sprintf("%s lacks %d changes", m.Name, newest-s.RaftAppliedIndex)}, nil
		}
	}
	return Turn{}, nil
}

// giveTurn gives the turn back, also one that this host was given before its member started again.
func (k absence) giveTurn(ctx context.Context) error {
	k.turn = 0
	return k.store.Datastores.GiveTurn(ctx, k.Node)
}
