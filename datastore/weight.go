package datastore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"github.com/pullet/pullet/state"
)

// owner is to whom records belong: somebody who alone may write them, or with no name all who may write the family.
type owner struct{ family, name string }

// weight is how many bytes of the member's file the records of each owner take, with their history.
type weight map[owner]int64

// weighedAtOnce is how many records are read together. It is how many etcd keeps apart from the file at most, before it
// writes them there: with fewer it could show those, and leave out older ones.
const weighedAtOnce = 10_000

// weigh reads all that is in the member's file, in the order in which it was written: to read the keys in their order
// etcd would go through all of them for each part, and somebody may have written millions.
func (m *member) weigh(s *state.Store) weight {
	out, from := weight{}, []byte{0}
	for {
		keys := out.add(m, s, from)
		if len(keys) < weighedAtOnce {
			return out
		}
		from = append(keys[len(keys)-1], 0)
	}
}

// add adds the records from a place in the file on, and returns their places.
func (w weight) add(m *member, s *state.Store, from []byte) (places [][]byte) {
	tx := m.server.Server.Backend().ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	found, values := tx.UnsafeRange(schema.Key, from, []byte{0xff}, weighedAtOnce)
	for i, at := range found {
		var kv mvccpb.KeyValue
		if proto.Unmarshal(values[i], &kv) == nil { // etcd would not have started with one that cannot be read
			family, name := s.Whose(string(kv.Key))
			w[owner{family, name}] += int64(len(at) + len(values[i]))
		}
		places = append(places, slices.Clone(at)) // it is etcd's, until the end
	}
	return places
}

// shared is how much families take that nobody owns.
func (w weight) shared(families ...string) (sum int64) {
	for _, f := range families {
		sum += w[owner{f, ""}]
	}
	return sum
}

// mostNamed is how many of those who take the most are named.
const mostNamed = 5

// String names who takes the most: first by name, then the families that several may write.
func (w weight) String() string {
	names, families := map[string]int64{}, map[string]int64{}
	for o, bytes := range w {
		if o.name != "" {
			names[o.name] += bytes
		} else {
			families[o.family] += bytes
		}
	}
	return fmt.Sprintf("records that one alone may write: %s; records that several may write: %s",
		heaviest(names), heaviest(families))
}

// heaviest names what has the most bytes.
func heaviest(of map[string]int64) string {
	order := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	var out []string
	for _, name := range order[:min(len(order), mostNamed)] {
		out = append(out, fmt.Sprintf("%s %s", name, sized(of[name])))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// sized is a number of bytes for people.
func sized(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
