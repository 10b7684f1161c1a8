package datastore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// follower is a host, or somebody who types commands, as its pulls are: each opens the record with the files that it
// has, writes, follows the fleet's authority and renews its certificate.
type follower struct {
	c            *cluster
	name         string
	dir          string
	endpoints    []string
	bundle, pair []byte
	key, csr     []byte // that wait for their certificate
}

// follow has everybody of the fleet pull until the test ends, and counts the pulls that worked. One that somebody
// refused fails the test; an election may come between.
func (c *cluster) follow(names ...string) (pulls *atomic.Int64) {
	c.Helper()
	all, err := c.members(c.Context())
	c.must(err)
	ctx, cancel := context.WithCancel(c.Context())
	var done sync.WaitGroup
	c.Cleanup(func() { cancel(); done.Wait() })
	pulls = &atomic.Int64{}
	for _, name := range names {
		f := &follower{c: c, name: name, dir: c.TempDir(), endpoints: all.endpoints, bundle: c.bundle, pair: c.credentials[name]}
		done.Go(func() {
			for ; ctx.Err() == nil; state.Pause(ctx, 100*time.Millisecond) {
				if err := f.pull(ctx); ctx.Err() == nil && refused(err) {
					c.Errorf("%s pulls: %v", f.name, err)
				} else if ctx.Err() == nil && err != nil {
					c.Logf("%s pulls: %v", f.name, err)
				} else {
					pulls.Add(1)
				}
			}
		})
	}
	return pulls
}

// refused reports an error that is no lack of an answer: one side does not believe the other, or did something else
// than it was to do.
func refused(err error) bool {
	away, unreachable := errors.AsType[*state.UnreachableError](err)
	if !unreachable {
		return err != nil && !state.Unanswered(err)
	}
	var bad *tls.CertificateVerificationError
	return away.Denied() || errors.As(away.Err, &bad) || strings.Contains(err.Error(), "refuses this host")
}

func (f *follower) pull(ctx context.Context) error {
	ca, cert := filepath.Join(f.dir, "ca.pem"), filepath.Join(f.dir, "cert.pem")
	if err := os.WriteFile(ca, f.bundle, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(cert, f.pair, 0o600); err != nil {
		return err
	}
	s, err := state.Open(ctx, state.Config{
		Endpoints: f.endpoints, Fleet: fleetName, TLS: state.TLS{CA: ca, Cert: cert, Key: cert},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	id, fleet, err := s.Identities.Issued(ctx, f.name)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if fleet.Bundle != string(f.bundle) {
		if err := authority.Follow(f.bundle, []byte(fleet.Bundle), []byte(fleet.Links)); err != nil {
			return err
		}
		f.bundle = []byte(fleet.Bundle)
		f.c.believes(f.bundle)
	}
	f.endpoints = fleet.Endpoints
	return f.renew(ctx, s, id)
}

// renew asks for the next certificate when another authority signs, and takes it.
func (f *follower) renew(ctx context.Context, s *state.Store, id state.Identity) error {
	signs, err := authority.Fingerprints(f.bundle)
	if err != nil {
		return err
	}
	is, err := authority.Inspect(f.pair)
	if err != nil {
		return err
	}
	switch by, err := authority.SignedBy(f.pair); {
	case err != nil || by == signs[0] && (len(signs) == 1 || id.Uses == is.Serial):
		return err
	case by == signs[0]:
		return s.Identities.Ask(ctx, f.name, state.Request{Uses: is.Serial})
	}
	if f.key == nil {
		if f.key, f.csr, err = authority.Request(); err != nil {
			return err
		}
	}
	if authority.Fits(f.key, []byte(id.Certificate), f.bundle, is.Subject, time.Now()) != nil {
		return s.Identities.Ask(ctx, f.name, state.Request{CSR: string(f.csr)})
	}
	f.pair, f.key = append(f.key, id.Certificate...), nil
	next, err := authority.Inspect(f.pair)
	if err != nil {
		return err
	}
	return s.Identities.Ask(ctx, f.name, state.Request{Uses: next.Serial})
}

// authorityAt is the authority that a member keeps.
func (c *cluster) authorityAt(name string) *authority.Authority {
	c.Helper()
	text, err := os.ReadFile(c.hosts[name].file(authorityFile))
	c.must(err)
	a, err := authority.Parse(text)
	c.must(err)
	return a
}

// rotates waits until all these members have one authority alone, which is another one than before, and none of them
// lets in who has a certificate of the former one.
func (c *cluster) rotates(before string, old []byte, names ...string) {
	c.Helper()
	c.Cleanup(func() {
		if c.Failed() {
			for _, name := range names {
				far, err := Rotate(context.Background(), c.hosts[name].Config, false)
				c.Logf("%s %+v %v", name, far, err)
			}
		}
	})
	c.eventually("all members have another authority alone", func() bool {
		first := c.authorityAt(names[0])
		return first.Fingerprint() != before && !slices.ContainsFunc(names, func(name string) bool {
			a := c.authorityAt(name)
			return a.Rotating() || a.Fingerprint() != first.Fingerprint() || c.hosts[name].has(nextFile)
		})
	})
	c.believes(c.authorityAt(names[0]).Bundle())
	for _, name := range names {
		c.eventually(name+" refuses the former authority", func() bool { return !c.letsIn(name, old) })
		c.eventually(name+" believes the authority that it has", func() bool { // the file is written a moment later
			bundle, err := os.ReadFile(c.hosts[name].file(bundleFile))
			c.must(err)
			return bytes.Equal(bundle, c.authorityAt(name).Bundle())
		})
	}
}

// believes has who looks at the members believe these authorities.
func (f *fleet) believes(bundle []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed = bundle
}

// letsIn reports whether a member lets somebody in.
func (c *cluster) letsIn(name string, credentials []byte) bool {
	client, err := c.connectTo(c.hosts[name].Endpoint(), credentials)
	if err != nil {
		return false
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Second)
	defer cancel()
	_, err = client.Get(ctx, "/pullet/prod/current_version")
	return err == nil
}

// eventually waits for what takes several elections.
func (c *cluster) eventually(what string, holds func() bool) {
	c.Helper()
	patience.UntilWithin(c.T, 2*time.Minute, what, holds)
}
