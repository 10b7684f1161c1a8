package state

import (
	"net/url"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/safetext"
)

// Authority is what hosts believe: the bundle of the fleet's authority. Hosts take a new one only where the one that
// they believe vouches for it, because whoever writes etcd writes this record, too.
type Authority struct {
	Bundle string `json:"bundle"` // certificates in PEM; the first one signs
	Links  string `json:"links"`  // certificates in PEM: newer authorities as former ones signed them
	Server string `json:"server"` // fingerprint of the authority that signed the datastore's own certificate
	Door   string `json:"door"`   // HOST:PORT at which hosts join; "": over ssh alone

	Endpoints []string `json:"endpoints,omitempty"` // URLs of the members of the datastore

	Ending []EndingSoon `json:"ending,omitempty"` // certificates near their end, those that end first
}

// Soon is how long before its end people hear of a certificate.
const Soon = 14 * 24 * time.Hour

// EndingSoon is a certificate that ends soon: its holder did not ask for the next one.
type EndingSoon struct {
	Name  string    `json:"name"`
	Until time.Time `json:"until"`
}

// Identity is somebody with a certificate of the fleet: a host, an operator or a viewer. The datastore has a user for
// each.
type Identity struct {
	Kind        authority.Kind `json:"kind"`
	Certificate string         `json:"certificate"` // the chain that was issued last, in PEM
	By          string         `json:"by"`          // who invited
	At          time.Time      `json:"at"`          // when the certificate was issued
	Serials     []Serial       `json:"serials"`     // of all its certificates that are still valid
	Uses        string         `json:"uses"`        // the number of the certificate that it is known to use
}

// Ends is when the last of its certificates ends.
func (i Identity) Ends() (end time.Time) {
	for _, s := range i.Serials {
		if s.Until.After(end) {
			end = s.Until
		}
	}
	return end
}

// Serial is a certificate.
type Serial struct {
	Number string    `json:"number"` // hexadecimal
	Until  time.Time `json:"until"`  // when it ends
}

// Request is what the holder of a certificate asks for before it ends, or says when the next one is in its place.
type Request struct {
	CSR  string `json:"csr,omitempty"`  // in PEM
	Uses string `json:"uses,omitempty"` // the number of the certificate that it uses from now on
}

// Invitation is a token that somebody may use once, with the labels of the host.
type Invitation struct {
	authority.Invitation
	Labels map[string]string `json:"labels,omitempty"`
}

// Revoked is a certificate that counts no more, until it would have ended.
type Revoked struct {
	Name  string    `json:"name"`
	Until time.Time `json:"until"`
}

// maxMembers bounds the members of a datastore: five, and those that come while others leave.
const maxMembers = 9

// maxPEM bounds texts in PEM: a chain, or the bundle of eight authorities and their links.
const maxPEM = 32 << 10

func (a *Authority) check(Key) error {
	var c checks
	c.unless(len(a.Bundle) <= maxPEM && len(a.Links) <= maxPEM, "it is too long")
	c.word("door", a.Door)
	c.word("server", a.Server)
	c.count("endpoints", len(a.Endpoints), maxMembers)
	for _, at := range a.Endpoints {
		u, err := url.Parse(at)
		c.unless(err == nil && u.Scheme == "https" && at == "https://"+u.Host, "%s is no endpoint", quoted(at))
		if err == nil {
			c.address("endpoint", u.Host)
		}
	}
	c.unless(len(a.Ending) <= maxList, "it names %d certificates near their end", len(a.Ending))
	for _, e := range a.Ending {
		c.node(e.Name)
		c.times(e.Until)
	}
	return c.err
}

func (i *Identity) check(Key) error {
	var c checks
	c.unless(len(i.Certificate) <= maxPEM, "its certificate is too long")
	c.unless(member(i.Kind), "%s is no kind of an identity", quoted(string(i.Kind)))
	c.unless(len(i.Serials) <= maxList, "it has %d certificates", len(i.Serials))
	c.times(i.At)
	c.unless(i.Uses == "" || serial(i.Uses), "%s is no serial number", quoted(i.Uses))
	for _, s := range i.Serials {
		c.unless(serial(s.Number), "%s is no serial number", quoted(s.Number))
		c.times(s.Until)
	}
	line(&i.By)
	return c.err
}

// member reports a kind of which one can be by an invitation: who writes those may not make servers and keepers.
func member(k authority.Kind) bool {
	return slices.Contains([]authority.Kind{authority.Node, authority.Operator, authority.Viewer}, k)
}

// serial reports the number of a certificate.
func serial(text string) bool { return text != "" && len(text) <= 64 && hexOf(text, len(text)) }

func (r *Request) check(Key) error {
	var c checks
	c.unless(len(r.CSR) <= maxPEM, "it is too long")
	c.unless(r.Uses == "" || serial(r.Uses), "%s is no serial number", quoted(r.Uses))
	return c.err
}

func (i *Invitation) check(k Key) error {
	var c checks
	c.unless(i.ID == k.Word, "it is of the invitation %s", quoted(i.ID))
	c.node(i.Name)
	c.unless(member(i.Kind), "nobody is invited as %s", quoted(string(i.Kind)))
	c.times(i.Until)
	if err := safetext.Labels(i.Labels); err != nil {
		c.unless(false, "%w", err)
	}
	line(&i.By)
	return c.err
}

func (r *Revoked) check(k Key) error {
	var c checks
	c.unless(serial(k.Word), "%s is no serial number", quoted(k.Word))
	c.node(r.Name)
	c.times(r.Until)
	return c.err
}
