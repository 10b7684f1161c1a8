package arbiter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecisions is the table of both rules.
func TestDecisions(t *testing.T) {
	parts := func(all ...Part) map[string]Part {
		out := map[string]Part{}
		for i, p := range all {
			out[fmt.Sprintf("h%d", i+1)] = p
		}
		return out
	}
	run := Item{Name: "run r1", Run: "r1", Parts: parts(Ahead, Ahead, Over)}
	open := func(all ...Part) Item { return Item{Name: "run r2", Run: "r2", Open: true, Parts: parts(all...)} }
	version := func(all ...Part) Item { return Item{Name: "version v", Parts: parts(all...)} }
	for name, c := range map[string]struct {
		others  []Item
		opens   []string // hosts that keep the run from opening
		blocked []string // hosts that do not begin with a version
	}{
		"nothing else":                             {},
		"a host is within a version":               {[]Item{version(Ahead, Within, Ahead)}, []string{"h2"}, nil},
		"hosts have a version ahead":               {[]Item{version(Ahead, Ahead, Ahead)}, nil, nil},
		"a host that is through is within another": {[]Item{version(Over, Over, Within)}, nil, nil},
		"a host is within an open run":             {[]Item{open(Within, Over, Over)}, []string{"h1"}, []string{"h1"}},
		"a host has an open run ahead":             {[]Item{open(Over, Ahead, Over)}, []string{"h2"}, []string{"h2"}},
		"an open run of other hosts":               {[]Item{open(Over, Over, Within)}, nil, []string{"h3"}},
		"it is open itself":                        {[]Item{{Run: "r1", Open: true, Parts: run.Parts}}, nil, []string{"h1", "h2"}},
		"two at once": {
			[]Item{version(Within, Over, Over), open(Over, Ahead, Ahead)}, []string{"h1"}, []string{"h2", "h3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var opens, blocked []string
			if c := ToOpen(run, c.others); c != nil {
				opens = c.Hosts
			}
			for _, host := range []string{"h1", "h2", "h3"} {
				if ToBegin(host, c.others) != nil {
					blocked = append(blocked, host)
				}
			}
			if diff := cmp.Diff([][]string{c.opens, c.blocked}, [][]string{opens, blocked}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoCircle lets small fleets work on runs and versions that come at any moment, and whose hosts wait for each other
// at barriers and in an order. Whatever the hosts do in which order, all of them get through with everything. Where
// hosts follow only the rules of a single host, some of these fleets stand still: without that the test says nothing.
func TestNoCircle(t *testing.T) {
	stuck := 0
	for seed := range uint64(3000) {
		if f := newFleet(seed, true); !f.ends() {
			t.Fatalf("seed %d: %s", seed, f)
		}
		if !newFleet(seed, false).ends() {
			stuck++
		}
	}
	if stuck == 0 {
		t.Error("no fleet stands still without the rules")
	}
}

// work is an item in a fleet of the test: the hosts of a stage meet at so many barriers. Versions may have two stages,
// and the hosts of the second one begin when the first one is over.
type work struct {
	Item
	barriers int
	at       map[string]int // barriers that a host came to
	second   map[string]bool
	from     int // it is there from this turn on
}

// waits reports that a host stands at a barrier to which others have not come.
func (w *work) waits(host string) bool {
	for other, p := range w.Parts {
		if p != Over && w.second[other] == w.second[host] && w.at[other] < w.at[host] {
			return true
		}
	}
	return false
}

type fleet struct {
	random      *rand.Rand
	arbitrated  bool
	hosts       []string
	runs, moves []*work // moves are versions; the last one that is there is the fleet's
	turn        int
}

func newFleet(seed uint64, arbitrated bool) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(seed, 1)), arbitrated: arbitrated}
	for i := range 2 + f.random.IntN(3) {
		f.hosts = append(f.hosts, fmt.Sprintf("h%d", i+1))
	}
	for i := range 1 + f.random.IntN(3) {
		f.runs = append(f.runs, f.work(fmt.Sprintf("r%d", i), true))
	}
	for i := range 1 + f.random.IntN(3) {
		v := f.work("", false)
		v.Name = fmt.Sprintf("v%d", i)
		f.moves = append(f.moves, v)
	}
	slices.SortFunc(f.moves, func(a, b *work) int { return a.from - b.from })
	return f
}

func (f *fleet) work(run string, some bool) *work {
	w := &work{
		Item:     Item{Name: run, Run: run, Parts: map[string]Part{}},
		barriers: f.random.IntN(3), at: map[string]int{}, second: map[string]bool{}, from: f.random.IntN(20),
	}
	for _, host := range f.hosts {
		if some && f.random.IntN(4) == 0 {
			continue
		}
		w.Parts[host] = Ahead
		w.second[host] = !some && f.random.IntN(2) == 0
	}
	return w
}

// ends lets hosts take turns until all are through, or nobody can do anything any more.
func (f *fleet) ends() bool {
	idle := 0
	for ; idle < 20*len(f.hosts); f.turn++ {
		if f.acts(f.hosts[f.random.IntN(len(f.hosts))]) || f.turn < 20 {
			idle = 0
		} else {
			idle++
		}
	}
	for _, w := range append(slices.Clone(f.runs), f.moves[len(f.moves)-1]) {
		for _, p := range w.Parts {
			if p != Over {
				return false
			}
		}
	}
	return true
}

func (f *fleet) there(all []*work) (out []*work) {
	for _, w := range all {
		if w.from <= f.turn {
			out = append(out, w)
		}
	}
	return out
}

// acts is one pull of a host: runs first, then the version. It reports that something happened.
func (f *fleet) acts(host string) bool {
	for _, r := range f.there(f.runs) {
		if r.Parts[host] == Within {
			return r.goesOn(host)
		}
	}
	versions := f.there(f.moves)
	var version *work
	if len(versions) > 0 {
		version = versions[len(versions)-1]
		for _, old := range versions[:len(versions)-1] { // superseded: hosts leave it when they begin with the next one
			for other, p := range old.Parts {
				if p == Ahead {
					old.Parts[other] = Over
				}
			}
		}
	}
	if version != nil && version.Parts[host] == Within {
		return version.goesOn(host)
	}
	runs := f.there(f.runs)
	f.random.Shuffle(len(runs), func(i, k int) { runs[i], runs[k] = runs[k], runs[i] })
	for _, r := range runs {
		unseen := f.random.IntN(4) == 0
		if !unseen && r.Parts[host] == Ahead && f.begins(r, host, version) {
			if f.random.IntN(2) == 0 {
				return true // it waits for a slot
			}
			r.Parts[host] = Within
			r.goesOn(host)
			return true
		}
	}
	if version == nil || version.Parts[host] == Over {
		return false
	}
	for other, p := range version.Parts {
		if version.second[host] && !version.second[other] && p != Over {
			return false
		}
	}
	if f.arbitrated && ToBegin(host, f.items(f.runs)) != nil {
		return false
	}
	for _, old := range versions {
		old.Parts[host] = Over
	}
	version.Parts[host] = Within
	version.goesOn(host)
	return true
}

// begins reports that a host may begin with a run. Without an arbiter it looks at itself alone: it changes to a version
// first.
func (f *fleet) begins(r *work, host string, version *work) bool {
	if !f.arbitrated {
		return version == nil || version.Parts[host] == Over
	}
	if r.Open {
		return true
	}
	r.Open = ToOpen(r.Item, append(f.items(f.runs), f.items(f.there(f.moves))...)) == nil
	return r.Open
}

func (f *fleet) items(all []*work) (out []Item) {
	for _, w := range all {
		out = append(out, w.Item)
	}
	return out
}

// goesOn lets a host go on to its next barrier, or be through.
func (w *work) goesOn(host string) bool {
	switch {
	case w.at[host] > 0 && w.waits(host):
		return false
	case w.at[host] == w.barriers:
		w.Parts[host] = Over
	default:
		w.at[host]++
	}
	return true
}

func (f *fleet) String() string {
	text := ""
	for _, w := range append(slices.Clone(f.runs), f.moves...) {
		text += fmt.Sprintf("%s from %d, open %t: %v at %v of %d, second %v\n", w.Name, w.from, w.Open, w.Parts, w.at, w.barriers, w.second)
	}
	return text
}
