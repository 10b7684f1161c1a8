package datastore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/state"
)

// keys are the authority, and the credentials that the datastore itself has.
type keys struct {
	Config
	fleet     string
	authority *authority.Authority
	next      *authority.Authority // signs when all members believe it; nil: there is none
	revoked   []string             // serial numbers in the list of those that count no more; nil: not known
}

// readKeys reads the authority of a datastore.
func readKeys(c Config, fleet string) (*keys, error) {
	text, err := ownfile.Read(c.file(authorityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no datastore in %s: pullet fleet create makes one", c.Dir)
	}
	if err != nil {
		return nil, err
	}
	a, err := authority.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.file(authorityFile), err)
	}
	if a.Fleet() != fleet {
		return nil, fmt.Errorf("the datastore in %s is of the fleet %s, and this host of the fleet %s",
			c.Dir, a.Fleet(), fleet)
	}
	k := &keys{Config: c, fleet: fleet, authority: a}
	return k, k.readNext()
}

// write writes what hosts and the server believe, and new credentials of the server and of the keeper.
func (k *keys) write(now time.Time) error {
	if err := k.believe(); err != nil {
		return err
	}
	who := authority.Subject{Fleet: k.fleet, Name: authority.ServerName, Kind: authority.Server}
	server, err := k.signed(k.authority, who, now)
	if err != nil {
		return err
	}
	keeper, err := k.keeper(k.authority, now)
	if err == nil {
		err = durable.Replace(k.file(serverFile), server)
	}
	if err == nil {
		err = durable.Replace(k.file(keeperFile), keeper)
	}
	return err
}

// believe writes what the server believes. A member reads it when it starts.
func (k *keys) believe() error { return durable.Replace(k.file(bundleFile), k.authority.Bundle()) }

// change puts another authority in the place of this one.
func (k *keys) change(a *authority.Authority) error {
	err := durable.Replace(k.file(authorityFile), a.Encode())
	if err == nil {
		k.authority = a
	}
	return err
}

// keeper are credentials of the keeper that an authority signs.
func (k *keys) keeper(by *authority.Authority, now time.Time) ([]byte, error) {
	return k.signed(by, authority.Subject{Fleet: k.fleet, Name: keeperUser, Kind: authority.Keeper}, now)
}

// complete writes what is not there, because authority.pem and a backup of the record are all that was restored. The
// keeper's first round lists who was revoked.
func (k *keys) complete(now time.Time) error {
	for _, file := range []string{bundleFile, serverFile, keeperFile} {
		if _, err := os.Stat(k.file(file)); errors.Is(err, fs.ErrNotExist) {
			return errors.Join(k.write(now), k.completeList(now))
		} else if err != nil {
			return err
		}
	}
	return k.completeList(now)
}

// signed makes a key and its certificate.
func (k *keys) signed(by *authority.Authority, who authority.Subject, now time.Time) ([]byte, error) {
	key, csr, err := authority.Request()
	if err != nil {
		return nil, err
	}
	var hosts []string
	if who.Kind == authority.Server {
		hosts = k.hosts()
	}
	chain, err := by.Issue(csr, who, hosts, authority.DefaultLife, now)
	return append(key, chain...), err
}

// mostValid is how many certificates somebody may have at a time. A host that asks again and again gets no more: the
// list of those that count no more would grow with them.
const mostValid = 32

// certificate is somebody with a further certificate, for the key of a request.
func (k *keys) certificate(name string, i state.Identity, csr string, now time.Time) (state.Identity, error) {
	i.Serials = slices.DeleteFunc(slices.Clone(i.Serials), func(s state.Serial) bool { return now.After(s.Until) })
	if len(i.Serials) >= mostValid {
		return i, &authority.Refusal{
			Reason: fmt.Sprintf("%s has %d certificates that are valid: invite it again", name, len(i.Serials)),
		}
	}
	who := authority.Subject{Fleet: k.fleet, Name: name, Kind: i.Kind}
	chain, err := k.authority.Issue([]byte(csr), who, nil, authority.DefaultLife, now)
	if err != nil {
		return i, err
	}
	c, err := authority.Inspect(chain)
	if err != nil {
		return i, err
	}
	i.Certificate, i.At = string(chain), now.UTC()
	i.Serials = append(i.Serials, state.Serial{Number: c.Serial, Until: c.NotAfter})
	return i, nil
}

// answered reports a request that the certificate on record answers: it was asked again before that was read. With
// another certificate for it nobody would know which of them is used.
func (k *keys) answered(i state.Identity, csr string, now time.Time) bool {
	chain := []byte(i.Certificate)
	by, err := authority.SignedBy(chain)
	if err != nil || by != k.authority.Fingerprint() {
		return false
	}
	has, err := authority.Inspect(chain)
	return err == nil && now.Before(has.RenewAt()) && authority.Answers(chain, []byte(csr))
}

// former are those whose certificate a former authority signed, or who are not known to use a newer one: after a
// rotation they would be shut out.
func (k *keys) former(all map[string]state.Identity) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		i := all[name]
		by, err := authority.SignedBy([]byte(i.Certificate))
		c, damaged := authority.Inspect([]byte(i.Certificate))
		if err != nil || damaged != nil || by != k.authority.Fingerprint() || i.Uses != c.Serial {
			out = append(out, name)
		}
	}
	return out
}

// answer is what somebody gets with a certificate.
func (k *keys) answer(name string, i state.Identity) authority.Answer {
	return authority.Answer{
		Name: name, Certificate: i.Certificate, Bundle: string(k.authority.Bundle()),
		Endpoints: []string{k.Endpoint()}, Fleet: k.fleet,
	}
}

// due reports that credentials have to be renewed. While the authority is rotated they stay as long as they can: hosts
// that did not learn the new authority yet do not believe what it signed.
func (k *keys) due(now time.Time) (bool, error) {
	for _, file := range []string{serverFile, keeperFile} {
		text, err := os.ReadFile(k.file(file))
		if err != nil {
			return false, err
		}
		c, err := authority.Inspect(text)
		if err != nil {
			return false, fmt.Errorf("%s: %w", k.file(file), err)
		}
		at := c.RenewAt()
		if k.authority.Rotating() {
			at = c.NotAfter.Add(-lastDays)
		}
		if !now.Before(at) || file == serverFile && !k.serves(text) {
			return true, nil
		}
	}
	return false, nil
}

// serves reports credentials for all addresses at which hosts look for the server: the configuration may name others
// than before.
func (k *keys) serves(credentials []byte) bool {
	pair, err := tls.X509KeyPair(credentials, credentials)
	lacks := func(host string) bool { return pair.Leaf.VerifyHostname(host) != nil }
	return err == nil && !slices.ContainsFunc(k.hosts(), lacks)
}

// lastDays are how long before their end credentials are renewed whatever else is under way.
const lastDays = 10 * 24 * time.Hour

// revoke writes the list of the certificates that count no more, where it is another one than before.
func (k *keys) revoke(numbers []string, now time.Time) error {
	slices.Sort(numbers)
	if k.revoked != nil && slices.Equal(k.revoked, numbers) {
		return nil
	}
	list, err := k.authority.Revocations(numbers, now)
	if err == nil {
		err = durable.Replace(k.file(crlFile), list)
	}
	if err == nil {
		k.revoked = numbers
	}
	return err
}
