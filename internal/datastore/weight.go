package datastore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/state"
)

// owner is to whom records belong: somebody who alone may write them, or with no name all who may write the family.
type owner struct{ family, name string }

// weight is how many bytes of the member's file the records of each owner take, with their history.
type weight map[owner]int64

// weigh weighs all that is in the member's file.
func (m *member) weigh(s *state.Store) weight {
	out := weight{}
	_ = m.walk(func(key string, bytes int) error {
		family, name := s.Whose(key)
		out[owner{family, name}] += int64(bytes)
		return nil
	})
	return out
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
