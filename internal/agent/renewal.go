package agent

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/state"
)

// renewal keeps the certificate of a host, or of somebody who types commands, and the authority that is believed. The
// next certificate is asked for in the fleet's record, where the keeper of the datastore answers: at this pull, or at a
// later one.
type renewal struct {
	files state.TLS // Cert has the key, too
	store *state.Store
	now   time.Time
}

// nextFile is where the key is, beside the certificate, whose certificate was asked for.
const nextFile = ".next"

// keep does what is due. It is true where another file is in use now: connections that are made from now on use it.
func (r renewal) keep(ctx context.Context, fleet state.Authority) (bool, error) {
	bundle, err := os.ReadFile(r.files.CA)
	if err != nil {
		return false, err
	}
	text, err := ownfile.Read(r.files.Cert)
	if err != nil {
		return false, err
	}
	has, err := authority.Inspect(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", r.files.Cert, err)
	}
	followed := false
	if fleet.Bundle != "" && fleet.Bundle != string(bundle) {
		if err := r.follow(bundle, fleet); err != nil {
			return false, err
		}
		bundle, followed = []byte(fleet.Bundle), true
	}
	due, err := r.due(has, text, bundle)
	if err == nil && !due {
		err = r.confirm(ctx, has, bundle)
	}
	if err != nil || !due {
		return followed, err
	}
	done, err := r.replace(ctx, has.Subject, bundle)
	return followed || done, err
}

// follow believes what the fleet's record offers, where what this host believes vouches for it.
func (r renewal) follow(bundle []byte, fleet state.Authority) error {
	if err := authority.Follow(bundle, []byte(fleet.Bundle), []byte(fleet.Links)); err != nil {
		return err
	}
	return durable.Replace(r.files.CA, []byte(fleet.Bundle))
}

// due reports that it is time for the next certificate: after two thirds of this one's life, or when another authority
// signs now.
func (r renewal) due(has authority.Certificate, credentials, bundle []byte) (bool, error) {
	if !r.now.Before(has.RenewAt()) {
		return true, nil
	}
	signs, err := authority.Fingerprints(bundle)
	if err != nil {
		return false, err
	}
	by, err := authority.SignedBy(credentials)
	return by != signs[0], err
}

// confirm says once more which certificate is in use, while the authority is exchanged and that is not on record: who
// said so first may have been cut off, and all others wait for it.
func (r renewal) confirm(ctx context.Context, has authority.Certificate, bundle []byte) error {
	believed, err := authority.Fingerprints(bundle)
	if err != nil || len(believed) == 1 {
		return err
	}
	id, _, err := r.store.Identities.Issued(ctx, has.Name)
	if err != nil || id.Certificate == "" || id.Uses == has.Serial {
		return err
	}
	return r.store.Identities.Ask(ctx, has.Name, state.Request{Uses: has.Serial})
}

// replace asks for the next certificate, or places it where it is there.
func (r renewal) replace(ctx context.Context, who authority.Subject, bundle []byte) (bool, error) {
	key, csr, err := r.next()
	if err != nil {
		return false, err
	}
	id, _, err := r.store.Identities.Issued(ctx, who.Name)
	if err != nil {
		return false, err
	}
	if authority.Fits(key, []byte(id.Certificate), bundle, who, r.now) != nil {
		return false, r.store.Identities.Ask(ctx, who.Name, state.Request{CSR: string(csr)})
	}
	if err := durable.Replace(r.files.Cert, append(key, id.Certificate...)); err != nil {
		return false, err
	}
	next, err := authority.Inspect([]byte(id.Certificate))
	if err != nil {
		return true, err
	}
	return true, errors.Join(
		os.Remove(r.files.Cert+nextFile), r.store.Identities.Ask(ctx, who.Name, state.Request{Uses: next.Serial}),
	)
}

// next is the key that waits for its certificate, and the request for it: the same until it came.
func (r renewal) next() (key, csr []byte, err error) {
	text, err := ownfile.Read(r.files.Cert + nextFile)
	if errors.Is(err, fs.ErrNotExist) {
		if key, csr, err = authority.Request(); err != nil {
			return nil, nil, err
		}
		return key, csr, durable.Replace(r.files.Cert+nextFile, append(key, csr...))
	}
	if err != nil {
		return nil, nil, err
	}
	block, rest := pem.Decode(text)
	if block == nil || !strings.Contains(block.Type, "PRIVATE KEY") {
		return nil, nil, fmt.Errorf("%s is damaged: remove it", filepath.Clean(r.files.Cert+nextFile))
	}
	return pem.EncodeToMemory(block), rest, nil
}

// renewCertificate keeps the certificate of this host. That it cannot is a warning: the one that it has is valid for a
// while.
func (r *registration) renewCertificate(ctx context.Context, store *state.Store, fleet state.Authority) {
	if !r.config.Etcd.Renew {
		return
	}
	renewed, err := renewal{r.config.Etcd.TLS, store, time.Now()}.keep(ctx, fleet)
	if err != nil {
		r.out.warn(fmt.Errorf("the certificate of this host is not renewed: %w", store.Explain(err)))
	}
	if renewed {
		r.log.Info("the certificate of this host is renewed")
		r.connection.stale()
	}
}

// RenewForPeople keeps the certificate with which people type commands, and what it believes. One that somebody else
// may write is left alone: root does it.
func (c Config) RenewForPeople(ctx context.Context, store *state.Store) error {
	files := c.forPeople().TLS
	if !c.Etcd.Renew || files.Cert == "" || ownfile.Check(files.Cert) != nil {
		return nil
	}
	is, err := person(c)
	if err != nil || is.Kind == authority.Node { // its pulls do that
		return err
	}
	_, fleet, err := store.Identities.Issued(ctx, is.Name)
	if err != nil {
		return err
	}
	_, err = renewal{files, store, time.Now()}.keep(ctx, fleet)
	return errors.Join(err, c.Etcd.remember(fleet.Endpoints))
}

// Operator is the name of the operator who types commands here; "" where no certificate says so.
func (c Config) Operator() string {
	is, err := person(c)
	if err != nil || is.Kind != authority.Operator {
		return ""
	}
	return is.Name
}

// person is whom the certificate names with which people type commands here.
func person(c Config) (authority.Certificate, error) {
	text, err := os.ReadFile(c.forPeople().TLS.Cert)
	if err != nil {
		return authority.Certificate{}, err
	}
	return authority.Inspect(text)
}
