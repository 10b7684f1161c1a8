package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// vouches signs and encrypts what targeted steps returned, with the keys that secrets.yaml gives the hosts: whoever
// writes in etcd cannot forge it, and whoever reads etcd cannot read what is secret. It is safe for concurrent use.
type vouches struct {
	keys        *keyring
	program     *compiled
	fleet, node string

	once   sync.Once // reads listed
	listed map[string][]trust.Recipient
	failed error
}

// sharedResult is a result as hosts share it: of a host without a key in secrets.yaml the result itself, else what the
// host signed.
type sharedResult struct {
	render.StepResult
	Signed    []byte `json:"signed,omitempty"`    // the result as JSON, or encrypted
	Encrypted bool   `json:"encrypted,omitempty"` // for the hosts that have the step
	// Digest is the SHA-256 of an encrypted result before its encryption: signed in its place, so that any reader can
	// encrypt it anew for hosts that come later. The result begins with random bytes, else it could be guessed.
	Digest    []byte `json:"digest,omitempty"`
	Signature []byte `json:"signature,omitempty"`
}

// saltSize is how many random bytes stand before a result that is encrypted.
const saltSize = 32

// errClosed is about a result that is not encrypted for this host, which is one of its readers.
var errClosed = errors.New("it is not encrypted for this host")

// pack encodes a result for other hosts: signed, and encrypted where it is secret.
func (v *vouches) pack(s apply.GatedStep, attempt string, r render.StepResult) ([]byte, error) {
	to, all, err := v.readers(s)
	if err != nil {
		return nil, err
	}
	out := sharedResult{Encrypted: len(to) > 0 && (r.Secret || s.Sensitive && all)}
	if r.Withheld = r.Withheld || r.Secret && !out.Encrypted; r.Withheld {
		r.StdOut, r.StdErr, r.Data = "", "", nil
	}
	out.Signed, err = json.Marshal(r)
	if err == nil && out.Encrypted {
		salt := make([]byte, saltSize)
		rand.Read(salt)
		err = out.seal(append(salt, out.Signed...), to)
	}
	if err != nil {
		return nil, err
	}
	out.Signature, err = v.sign(v.message(s, v.node, attempt, r.Result, out))
	if err != nil {
		return nil, err
	}
	if out.Signature == nil && !out.Encrypted { // nobody expects more
		return out.Signed, nil
	}
	return json.Marshal(out)
}

func newVouches(c *Config, keys *keyring, program *compiled) *vouches {
	return &vouches{keys: keys, program: program, fleet: c.Fleet, node: c.Node.Name}
}

// seal encrypts a salted result.
func (r *sharedResult) seal(salted []byte, to []trust.Recipient) (err error) {
	sum := sha256.Sum256(salted)
	r.Digest = sum[:]
	r.Signed, err = trust.SealBinary(salted, to)
	return err
}

// open is the result that a host shared, if that host may have written it. The error is errClosed where this host is a
// reader that it is not encrypted for yet.
func (v *vouches) open(s apply.GatedStep, of state.StepResult, shared sharedResult) (render.StepResult, error) {
	if len(shared.Signed) == 0 && shared.StepResult.Result == "" { // an operator said what became of it, and no more
		return render.StepResult{}, nil
	}
	if err := v.vouched(s, of, shared); err != nil {
		return render.StepResult{}, fmt.Errorf(
			"the result of %s that etcd has from %s was not written by %[2]s: %w; if its key changed since: "+
				"pullet rollout settle %[1]s --again --force",
			s.ID(),
			of.Node,
			err,
		)
	}
	if len(shared.Signed) == 0 {
		return shared.StepResult, nil
	}
	value, err := v.decrypted(shared)
	if listed, _ := v.hostKeys(v.node); errors.Is(err, trust.ErrNotRecipient) && len(listed) == 0 {
		return render.StepResult{Result: of.Result, State: of.Result, Secret: true, Withheld: true}, nil
	}
	if errors.Is(err, trust.ErrNotRecipient) {
		err = errClosed
	}
	if err != nil {
		return render.StepResult{}, fmt.Errorf("the result of %s from %s: %w", s.ID(), of.Node, err)
	}
	var out render.StepResult
	err = state.ReadValue(of, value, &out)
	return out, err
}

// vouched is an error where a host did not sign a result and should have.
func (v *vouches) vouched(s apply.GatedStep, of state.StepResult, shared sharedResult) error {
	keys, err := v.hostKeys(of.Node)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(keys, trust.Recipient.IsSSH) {
		return verified(keys, v.message(s, of.Node, of.Attempt, of.Result, shared), shared.Signature)
	}
	to, all, err := v.readers(s)
	if err == nil && all && len(to) > 0 {
		err = fmt.Errorf("it has no SSH key below hosts in %s, where all hosts with the step have one", render.SecretsFile)
	}
	return err
}

func (v *vouches) decrypted(shared sharedResult) ([]byte, error) {
	if !shared.Encrypted {
		return shared.Signed, nil
	}
	salted, err := v.salted(shared)
	if err != nil {
		return nil, err
	}
	return salted[saltSize:], nil
}

// salted is an encrypted result behind its salt, as its writer signed it.
func (v *vouches) salted(shared sharedResult) ([]byte, error) {
	ids, err := v.keys.read()
	if err != nil {
		return nil, err
	}
	salted, err := trust.Unseal(shared.Signed, ids)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(salted); len(salted) < saltSize || !bytes.Equal(sum[:], shared.Digest) {
		return nil, errors.New("what is encrypted is not what its writer signed")
	}
	return salted, nil
}

// message is what a host signs: how the step ended and what it returned, and of which attempt of which step of which
// version.
func (v *vouches) message(s apply.GatedStep, node, attempt, ended string, r sharedResult) []byte {
	version := v.program.catalog.Version
	if once(s) { // it stands for later versions, too
		version = ""
	}
	content := r.Signed
	if r.Encrypted {
		content = r.Digest
	}
	// Encoding cannot fail: it is texts, a truth value and bytes.
	text, _ := json.Marshal([]any{v.fleet, version, s.ID(), node, attempt, ended, r.Encrypted, content})
	return text
}

// verified is an error where none of a host's SSH keys signed a message; a host without such a key signs nothing.
func verified(keys []trust.Recipient, message, signature []byte) (why error) {
	for _, key := range keys {
		if !key.IsSSH() {
			continue
		}
		if why = key.Verify(message, signature); why == nil {
			return nil
		}
	}
	return why
}

// sign signs with the host's own key, where secrets.yaml has an SSH key for it.
func (v *vouches) sign(message []byte) ([]byte, error) {
	id, err := v.signer()
	if id == nil || err != nil {
		return nil, err
	}
	return id.Sign(message)
}

// signer is the host's own key that others verify with; nil where secrets.yaml has no SSH key for the host.
func (v *vouches) signer() (*trust.Identity, error) {
	listed, err := v.hostKeys(v.node)
	if err != nil || !slices.ContainsFunc(listed, trust.Recipient.IsSSH) {
		return nil, err
	}
	ids, err := v.keys.read()
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		isListed := func(key trust.Recipient) bool { return key.Text == id.Recipient.Text }
		if id.Recipient.IsSSH() && slices.ContainsFunc(listed, isListed) {
			return &ids[i], nil
		}
	}
	return nil, fmt.Errorf("%s has another SSH key for this host than it has: fix it below hosts", render.SecretsFile)
}

// readers are the keys of the hosts that have a step, and whether each of these hosts has one.
func (v *vouches) readers(s apply.GatedStep) (to []trust.Recipient, all bool, err error) {
	all = true
	for name, n := range v.program.catalog.Inventory {
		if !s.Job.Has(name, n.Labels) {
			continue
		}
		keys, err := v.hostKeys(name)
		if err != nil {
			return nil, false, err
		}
		all, to = all && len(keys) > 0, append(to, keys...)
	}
	return to, all, nil
}

// hostKeys are the keys of a host, of the first repository that names it. A malformed one is a mistake that validate
// finds, and no key.
func (v *vouches) hostKeys(name string) ([]trust.Recipient, error) {
	v.once.Do(v.readKeys)
	return v.listed[name], v.failed
}

func (v *vouches) readKeys() {
	v.listed = map[string][]trust.Recipient{}
	for _, l := range v.program.repo.Layers() {
		rules, err := v.program.repo.SecretRules(l)
		if err != nil {
			v.failed = err
			return
		}
		if rules == nil {
			continue
		}
		for name, keys := range rules.Hosts {
			if v.listed[name] != nil {
				continue
			}
			for _, text := range keys {
				if key, err := trust.ParseRecipient(text); err == nil {
					v.listed[name] = append(v.listed[name], key)
				}
			}
		}
	}
}
