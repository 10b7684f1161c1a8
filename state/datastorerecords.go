package state

import (
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// Wanted is what the repository says of the fleet's datastore: how many hosts carry it, and which may.
type Wanted struct {
	Seq          int           `json:"seq"`   // of the fleet's version that says so
	Count        int           `json:"count"` // 1, 3 or 5
	ReplaceAfter time.Duration `json:"replaceAfter"`
	Hosts        []Eligible    `json:"hosts"` // in the order in which they are taken
}

// Eligible is a host that may carry the datastore.
type Eligible struct {
	Node   string `json:"node"`
	Domain string `json:"domain,omitempty"` // where a fault hits all hosts, such as a rack
}

// Carrier is what a host says of itself that may carry the datastore.
type Carrier struct {
	Client    string `json:"client"`         // HOST:PORT at which hosts will reach it
	Peer      string `json:"peer"`           // HOST:PORT at which members will
	Door      string `json:"door,omitempty"` // HOST:PORT at which new hosts will join; "": over ssh alone
	Recipient string `json:"recipient"`      // the public key of age that the authority is encrypted for
}

// Handed is what a host gets that becomes a member, encrypted for it.
type Handed struct {
	Member uint64 `json:"member"` // its id in the cluster
	Sealed []byte `json:"sealed"`
}

// Reach is what a member says of the others, and of itself. It ends with the member's lease.
type Reach struct {
	Away      []string `json:"away"`                // the nodes of members that it does not reach
	Unlike    []string `json:"unlike,omitempty"`    // the nodes of members whose record differs from its own
	Recipient string   `json:"recipient,omitempty"` // the public key of age that a next authority is encrypted for
	Believes  []string `json:"believes,omitempty"`  // fingerprints of the authorities that it believes, sorted
	Presents  string   `json:"presents,omitempty"`  // that of the authority which signed its own certificate
	Format    int      `json:"format,omitempty"`    // of the fleet's record that it reads; 0: the first
}

// MemberSteps are the last steps of those who change the members, the newest last.
type MemberSteps struct {
	Steps []MemberStep `json:"steps"`
	Waits string       `json:"waits,omitempty"` // for what the next one waits; "": there is none
}

// MemberStep is a change of the members.
type MemberStep struct {
	Kind string    `json:"kind"`
	Node string    `json:"node"`
	Why  string    `json:"why"`
	By   string    `json:"by"` // the member that led
	At   time.Time `json:"at"`

	Failed bool `json:"failed,omitempty"` // it removed a host that never came
}

// MostEligible is how many hosts may carry the datastore: of more, those that come first by name.
const MostEligible = 200

// maxSealed bounds what a member is handed: the authority with its former ones, and the addresses of five members.
const maxSealed = 128 << 10

func (w *Wanted) check(Key) error {
	var c checks
	c.unless(slices.Contains([]int{1, 3, 5}, w.Count), "%d members: there are 1, 3 or 5", w.Count)
	c.unless(w.ReplaceAfter > 0, "replaceAfter is %s", w.ReplaceAfter)
	c.unless(w.Seq >= 0, "it is of version %d", w.Seq)
	c.count("hosts", len(w.Hosts), MostEligible)
	for _, h := range w.Hosts {
		c.node(h.Node)
		c.unless(safetext.Label("domain", h.Domain) == nil, "%s is no value of a label", quoted(h.Domain))
	}
	return c.err
}

func (a *Carrier) check(Key) error {
	var c checks
	c.address("client", a.Client)
	c.address("peer", a.Peer)
	if a.Door != "" {
		c.address("door", a.Door)
	}
	c.word("recipient", a.Recipient)
	return c.err
}

// address checks HOST:PORT.
func (c *checks) address(what, text string) {
	host, port, err := net.SplitHostPort(text)
	n, bad := strconv.Atoi(port)
	numbered := bad == nil && n > 0 && n < 1<<16 && strconv.Itoa(n) == port
	named := net.ParseIP(host) != nil || safetext.Host(host)
	c.unless(err == nil && numbered && named, "%s: %s is not HOST:PORT", what, quoted(text))
}

func (h *Handed) check(Key) error {
	var c checks
	c.unless(len(h.Sealed) <= maxSealed, "it is too long")
	return c.err
}

func (r *Reach) check(Key) error {
	var c checks
	c.nodes(r.Away)
	c.nodes(r.Unlike)
	c.count("format", r.Format, maxFormat)
	c.word("recipient", r.Recipient)
	c.word("presents", r.Presents)
	c.count("authorities", len(r.Believes), maxList)
	for _, one := range r.Believes {
		c.word("believes", one)
	}
	return c.err
}

func (s *MemberSteps) check(Key) error {
	var c checks
	c.count("steps", len(s.Steps), maxList)
	line(&s.Waits)
	for i := range s.Steps {
		one := &s.Steps[i]
		c.word("kind", one.Kind)
		c.times(one.At)
		line(&one.Node)
		line(&one.Why)
		line(&one.By)
	}
	return c.err
}
