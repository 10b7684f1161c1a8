package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Member is a node as rosters see it.
type Member struct {
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Roster is the list of a group's nodes in a rollout, frozen when somebody first asked.
type Roster struct {
	Size  int      `json:"size"`
	Roles []string `json:"roles"`          // that its nodes have
	Left  []string `json:"left,omitempty"` // who was left out, and why
	names []byte   // "\nweb1\nweb2\n"
}

// Has reports a node of the roster.
func (r *Roster) Has(node string) bool { return bytes.Contains(r.names, []byte("\n"+node+"\n")) }

// Nodes are the roster's, sorted.
func (r *Roster) Nodes() []string { return strings.Fields(string(r.names)) }

// newRoster makes a roster of nodes with their roles.
func newRoster(members map[string]string) *Roster {
	roles := map[string]bool{}
	for _, role := range members {
		roles[role] = true
	}
	names := slices.Sorted(maps.Keys(members))
	return &Roster{
		Size:  len(names),
		Roles: slices.Sorted(maps.Keys(roles)),
		names: []byte("\n" + strings.Join(names, "\n") + "\n"),
	}
}

// encode is a line of JSON and then the names, a line each: large rosters are searched and never decoded.
func (r *Roster) encode() string {
	head, _ := json.Marshal(r) // plain data
	return string(head) + string(r.names)
}

func (r *Roster) decode(value []byte) error {
	end := bytes.IndexByte(value, '\n')
	if end < 0 {
		return errors.New("it has no names")
	}
	r.names = value[end:]
	return unpackJSON(value[:end], r)
}

// Key is the frozen roster of a group in a rollout.
func (s *Rosters) Key(rollout, group string) string {
	return s.store.Rollouts.key(rollout, "roster", group)
}

// Members are the nodes that count: those of the inventory, and every registered one outside it, less the
// decommissioned; and those that put their claims back in a restored record which does not know them.
func (s *Rosters) Members(ctx context.Context, inventory map[string]Member) (map[string]Member, error) {
	got, err := s.store.Client.Txn(ctx).Then(s.membersOps()...).Commit()
	if err != nil {
		return nil, err
	}
	return s.membersOf(inventory, got.Responses), nil
}

// membersOps read what membersOf takes: the nodes, and who is in the middle of an upgrade.
func (s *Rosters) membersOps() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.store.Nodes.Key(""), clientv3.WithPrefix()),
		clientv3.OpGet(s.store.Rollouts.SlotPrefix(""), clientv3.WithPrefix()),
	}
}

// membersOf are the members among what membersOps found.
func (s *Rosters) membersOf(inventory map[string]Member, answers []*pb.ResponseOp) map[string]Member {
	out := maps.Clone(inventory)
	if out == nil {
		out = map[string]Member{}
	}
	for _, kv := range answers[0].GetResponseRange().Kvs {
		n, err := Read[Node](s.store, kv)
		if err != nil {
			continue
		}
		if _, listed := out[n.Name]; n.Decommissioned {
			delete(out, n.Name)
		} else if !listed {
			out[n.Name] = Member{n.Role, n.Labels}
		}
	}
	for _, kv := range answers[1].GetResponseRange().Kvs {
		c := s.store.Rollouts.ReadClaim(kv)
		if _, known := out[c.Node]; c.Member != nil && !known {
			out[c.Node] = *c.Member
		}
	}
	return out
}

// MembersOf are some nodes as their own records say, without those that are not registered or are decommissioned.
func (s *Rosters) MembersOf(ctx context.Context, nodes []string) (map[string]Member, error) {
	var ops []clientv3.Op
	for _, node := range nodes {
		ops = append(ops, clientv3.OpGet(s.store.Nodes.Key(node)))
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	out := map[string]Member{}
	for _, a := range answers {
		for _, kv := range a.GetResponseRange().Kvs {
			n, err := Read[Node](s.store, kv)
			if err == nil && !n.Decommissioned {
				out[n.Name] = Member{n.Role, n.Labels}
			}
		}
	}
	return out, nil
}

// Belongs says whether a member belongs to a roster, and, where one that would is left out, why.
type Belongs func(node string, m Member) (yes bool, left string)

// Choose is asked by whoever makes a roster, for what that rests on. Without an answer no roster is made.
type Choose func(ctx context.Context) (Belongs, error)

// Always chooses by the node alone.
func (b Belongs) Always() Choose { return func(context.Context) (Belongs, error) { return b, nil } }

// Freeze is the roster at a key: what it was when somebody first asked. A new one has the members that belong.
func (s *Rosters) Freeze(
	ctx context.Context,
	key string,
	inventory map[string]Member,
	choose Choose,
) (*Roster, error) {
	return s.agree(ctx, key, clientv3.OpTxn(nil, s.wholeOps(key), nil), false, inventory, choose)
}

// For is the same as far as one node needs it: how large the roster is, and whether the node is of it.
func (s *Rosters) For(
	ctx context.Context,
	key, node string,
	inventory map[string]Member,
	choose Choose,
) (*Roster, error) {
	return s.agree(ctx, key, s.Op(key, node), false, inventory, choose)
}

// NewFor is For, for a node that looked just now, with Op, and found none.
func (s *Rosters) NewFor(
	ctx context.Context,
	key, node string,
	inventory map[string]Member,
	choose Choose,
) (*Roster, error) {
	return s.agree(ctx, key, s.Op(key, node), true, inventory, choose)
}

// agree reads a roster, unless it is known that there is none. One of those that come at once then makes it, for which
// it reads all nodes; the others wait for that one, for a while.
func (s *Rosters) agree(
	ctx context.Context,
	key string,
	read clientv3.Op,
	none bool,
	inventory map[string]Member,
	choose Choose,
) (*Roster, error) {
	waited := false
	for ; ; none = false {
		since := int64(0)
		if !none {
			got, err := s.store.Client.Txn(ctx).Then(read).Commit()
			if err != nil {
				return nil, err
			}
			if roster, err := s.Of(got.Responses[0]); roster != nil || err != nil {
				return roster, err
			}
			if made := got.Responses[0].GetResponseTxn().Responses[1].GetResponseRange().Count > 0; made && !waited {
				since = got.Header.Revision
			}
		}
		if since == 0 {
			mine, found, at, err := s.begin(ctx, key, waited)
			if err != nil {
				return nil, err
			}
			if mine {
				return s.make(ctx, key, s.membersOf(inventory, found), choose)
			}
			since = at
		}
		if waited = since > 0; waited &&
			!s.store.Bells.Await(ctx, s.partKey(key, "maker"), since, makerTime, clientv3.WithFilterPut()) {
			return nil, ctx.Err()
		}
	}
}

// makerTime is how long one who makes a roster is waited for.
const makerTime = 3 * time.Second

// begin says that the caller makes a roster, and reads all nodes for it. Else somebody else makes it, since a revision;
// 0: that one is done. With over, the caller waited for that one long enough.
func (s *Rosters) begin(
	ctx context.Context,
	key string,
	over bool,
) (mine bool, found []*pb.ResponseOp, since int64, err error) {
	maker := s.partKey(key, "maker")
	free := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	if !over {
		free = append(free, clientv3.Compare(clientv3.CreateRevision(maker), "=", 0))
	}
	done, err := s.store.Client.Txn(ctx).
		If(free...).
		Then(append(s.membersOps(), clientv3.OpPut(maker, ""))...).
		Else(clientv3.OpGet(maker, clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		return false, nil, 0, err
	}
	if done.Succeeded {
		return true, done.Responses, 0, nil
	}
	for _, kv := range done.Responses[0].GetResponseRange().Kvs {
		since = kv.ModRevision
	}
	if over {
		since = 0
	}
	return false, nil, since, nil
}

func (s *Rosters) make(ctx context.Context, key string, members map[string]Member, choose Choose) (*Roster, error) {
	belongs, err := choose(ctx)
	if err != nil {
		return nil, err
	}
	roles, out := map[string]string{}, []string{}
	for node, m := range members {
		yes, left := belongs(node, m)
		if yes {
			roles[node] = GroupOf(m.Role)
		} else if left != "" {
			out = append(out, node+" ("+left+")")
		}
	}
	roster := newRoster(roles)
	roster.Left = slices.Sorted(slices.Values(out))
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(s.ops(key, roster)...).Else(clientv3.OpGet(key)).Commit()
	if err != nil || done.Succeeded {
		return roster, err
	}
	return s.read(done.Responses[0].GetResponseRange().Kvs[0]) // another node was faster: its list holds
}

// The roster of a large fleet is cut: ten thousand nodes that read all names at once would move gigabytes.
const (
	cutAbove = 200 // nodes
	parts    = 64
)

// partKey is a part of a roster that is cut. It lies below what is forgotten together with the roster.
func (s *Rosters) partKey(key string, part string) string {
	in := strings.SplitN(strings.TrimPrefix(key, s.store.prefix), "/", 3)
	return s.store.key(in[0], in[1], "part", in[2], part)
}

// partOf is the part in which a node is.
func partOf(node string) string {
	h := fnv.New32a()
	fmt.Fprint(h, node)
	return strconv.Itoa(int(h.Sum32() % parts))
}

// Op reads the roster at a key as For does; Of takes the answer.
func (s *Rosters) Op(key, node string) clientv3.Op {
	part := s.partKey(key, partOf(node))
	cut := clientv3.Compare(clientv3.CreateRevision(part), ">", 0)
	return clientv3.OpTxn([]clientv3.Cmp{cut}, []clientv3.Op{clientv3.OpGet(part)}, s.wholeOps(key))
}

// wholeOps read a roster with all names, and whether somebody makes it now.
func (s *Rosters) wholeOps(key string) []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(s.partKey(key, "maker"), clientv3.WithCountOnly())}
}

// Of is what Op found; nil while there is none. One that cannot be read is a *BadRecordError.
func (s *Rosters) Of(answer *pb.ResponseOp) (*Roster, error) {
	kvs := answer.GetResponseTxn().Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return nil, nil
	}
	return s.read(kvs[0])
}

func (s *Rosters) read(kv *mvccpb.KeyValue) (*Roster, error) {
	r, err := Read[Roster](s.store, kv)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// ops write a roster, and its parts where it is cut.
func (s *Rosters) ops(key string, r *Roster) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpPut(key, r.encode()), clientv3.OpDelete(s.partKey(key, "maker"))}
	if r.Size <= cutAbove {
		return ops
	}
	names := map[string][]byte{}
	for _, node := range r.Nodes() {
		part := partOf(node)
		names[part] = append(append(names[part], node...), '\n')
	}
	for i := range parts {
		part := strconv.Itoa(i)
		own := &Roster{Size: r.Size, Roles: r.Roles, names: append([]byte("\n"), names[part]...)}
		ops = append(ops, clientv3.OpPut(s.partKey(key, part), own.encode()))
	}
	return ops
}
