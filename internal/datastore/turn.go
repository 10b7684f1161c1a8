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
	clientv3 "go.etcd.io/etcd/client/v3"
)

// turnPath is where the agent of this host asks whether its member may be away for a moment.
const turnPath = "/turn"

// awayTTL is how long a host has the turn if it does not keep it, in seconds: also one that boots, until the others see
// that it is away.
const awayTTL = 60

// turnTime is how long the keeper takes at most to answer an agent that asks for the turn.
const turnTime = 10 * time.Second

// Turn is the answer to a host whose member is to be away for a moment, such as for a restart.
type Turn struct {
	Waits string `json:"waits"` // for what it waits; "": it has the turn
	Cure  string `json:"cure"`  // what somebody has to do; "": nothing
}

// TakeTurn asks the keeper of this host whether its member may be away now: it may when each other member answers and
// has the record, and no other one was given the turn. Who has it keeps it within a minute, or has it no more. A
// member that does not run is away already, and needs no turn.
func TakeTurn(ctx context.Context, c Config) (t Turn, err error) {
	err = askInside(ctx, c, turnPath, nil, &t)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		if _, err := memberFiles(c.file(memberDir)).members(); errors.Is(err, errRuns) {
			return Turn{Waits: "the one of this host starts"}, nil
		}
		return Turn{}, nil
	}
	return t, err
}

// KeepTurn keeps the turn for another minute. It is an error where this host does not have it.
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

// who is how this host stands in the record while it has the turn for a step.
func (k absence) who() string { return k.Node + " away" }

// takeTurn looks at the others once more when it has the turn: who had it before may be away since.
func (k absence) takeTurn(ctx context.Context) (Turn, error) {
	if !k.among() {
		return Turn{}, nil
	}
	who, lease, err := k.store.Datastores.TurnOf(ctx)
	if err != nil {
		return Turn{}, err
	}
	if who != "" && who != k.who() {
		node, _, _ := strings.Cut(who, " ")
		return Turn{Waits: node + " has the turn"}, nil
	}
	if t, err := k.unready(ctx); err != nil || t.Waits != "" {
		return t, err
	}
	if who == "" {
		if lease, err = k.store.Datastores.Turn(ctx, k.who(), awayTTL); err != nil || lease == 0 {
			return Turn{Waits: "another one has the turn"}, err
		}
	} else if _, err := k.store.Client.KeepAliveOnce(ctx, lease); err != nil {
		return Turn{}, err
	}
	t, err := k.unready(ctx)
	if err != nil || t.Waits != "" {
		_, failed := k.store.Client.Revoke(ctx, lease)
		err = errors.Join(err, failed)
	}
	return t, err
}

func (k absence) keepTurn(ctx context.Context) error {
	who, lease, err := k.store.Datastores.TurnOf(ctx)
	if err == nil && who != k.who() {
		err = errors.New("this host has it no more")
	}
	if err == nil {
		_, err = k.store.Client.KeepAliveOnce(ctx, lease)
	}
	return err
}

// giveTurn gives the turn back, where this host has it.
func (k absence) giveTurn(ctx context.Context) error {
	who, lease, err := k.store.Datastores.TurnOf(ctx)
	if err == nil && who == k.who() {
		_, err = k.store.Client.Revoke(ctx, lease)
	}
	return err
}

// unready is for what this member waits before it may be away.
func (k absence) unready(ctx context.Context) (Turn, error) {
	listed, err := k.store.Client.MemberList(ctx)
	if err != nil {
		return Turn{}, err
	}
	voters := votersBut(listed.Members, 0)
	return missed(voters, statuses(ctx, k.store.Client, voters)), nil
}

// missed is for what one of these members waits before it may be away, by how all of them answer.
func missed(voters []*pb.Member, answers map[uint64]*clientv3.StatusResponse) Turn {
	if len(voters) == 2 {
		return Turn{"there are two, and nothing is written without one of them",
			"pullet datastore status says for which host they wait"}
	}
	newest := newestOf(answers)
	for _, m := range slices.SortedFunc(slices.Values(voters), byName) {
		cure := "look at pullet-etcd on " + m.Name + ": pullet datastore status"
		switch s := answers[m.ID]; {
		case s == nil:
			return Turn{m.Name + " does not answer", cure}
		case len(s.Errors) > 0: // such as one that the others do not reach: it has no leader
			return Turn{m.Name + ": " + strings.Join(s.Errors, ", "), cure}
		case s.RaftAppliedIndex+caughtUp < newest:
			return Turn{Waits: fmt.Sprintf("%s lacks %d changes", m.Name, newest-s.RaftAppliedIndex)}
		}
	}
	return Turn{}
}

func byName(a, b *pb.Member) int { return cmp.Compare(a.Name, b.Name) }
