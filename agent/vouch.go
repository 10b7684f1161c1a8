package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/secrets"
	"github.com/pullet/pullet/state"
	"github.com/pullet/pullet/trust"
)

// vouches signs and encrypts what targeted steps returned, with the keys that secrets.yaml gives the hosts: whoever
// writes in etcd cannot forge it, and whoever reads etcd cannot read what is secret. It is safe for concurrent use.
type vouches struct {
	keys        *keyring
	program     *compiled
	fleet, node string

	once   sync.Once // reads rules
	rules  []*secrets.Rules
	failed error
}

// sharedResult is a result as hosts share it: of a host without a key in secrets.yaml the result itself, else what the
// host signed.
type sharedResult struct {
	render.StepResult
	Signed    []byte `json:"signed,omitempty"`    // the result as JSON, or encrypted
	Encrypted bool   `json:"encrypted,omitempty"` // for the hosts that have the step
	Signature []byte `json:"signature,omitempty"`
}

// pack makes a result what other hosts read.
func (v *vouches) pack(s apply.GatedStep, attempt string, r render.StepResult) ([]byte, error) {
	to, all, err := v.readers(s)
	if err != nil {
		return nil, err
	}
	out := sharedResult{Encrypted: len(to) > 0 && (r.Secret || s.Sensitive && all)}
	if r.Withheld = r.Secret && !out.Encrypted; r.Withheld {
		r.StdOut, r.StdErr, r.Data = "", "", nil
	}
	out.Signed, err = json.Marshal(r)
	if err == nil && out.Encrypted {
		out.Signed, err = trust.SealBinary(out.Signed, to)
	}
	if err != nil {
		return nil, err
	}
	out.Signature, err = v.sign(v.message(s, v.node, attempt, out))
	if err != nil {
		return nil, err
	}
	if out.Signature == nil && !out.Encrypted { // nobody expects more
		return out.Signed, nil
	}
	return json.Marshal(out)
}

// open is the result that a host shared, if that host may have written it.
func (v *vouches) open(s apply.GatedStep, of state.StepResult, shared sharedResult) (render.StepResult, error) {
	keys, err := v.hostKeys(of.Node)
	if err != nil || len(shared.Signed) == 0 && shared.StepResult.Result == "" { // an operator said what became of it
		return shared.StepResult, err
	}
	if err := verified(keys, v.message(s, of.Node, of.Attempt, shared), shared.Signature); err != nil {
		return render.StepResult{}, fmt.Errorf(
			"the result of %s that etcd has from %s was not written by %[2]s: %w",
			s.ID(),
			of.Node,
			err,
		)
	}
	if len(shared.Signed) == 0 {
		return shared.StepResult, nil
	}
	value, err := v.decrypted(shared)
	if errors.Is(err, trust.ErrNotRecipient) {
		return render.StepResult{Secret: true, Withheld: true}, nil
	}
	if err != nil {
		return render.StepResult{}, fmt.Errorf("the result of %s from %s: %w", s.ID(), of.Node, err)
	}
	var out render.StepResult
	err = state.ReadValue(of, value, &out)
	return out, err
}

func (v *vouches) decrypted(shared sharedResult) ([]byte, error) {
	if !shared.Encrypted {
		return shared.Signed, nil
	}
	ids, err := v.keys.read()
	if err != nil {
		return nil, err
	}
	return trust.Unseal(shared.Signed, ids)
}

// message is what a host signs: what it says, and of which attempt of which step of which version.
func (v *vouches) message(s apply.GatedStep, node, attempt string, r sharedResult) []byte {
	version := v.program.catalog.Version
	if once(s) { // it stands for later versions, too
		version = ""
	}
	// Encoding cannot fail: it is texts, a truth value and bytes.
	text, _ := json.Marshal([]any{v.fleet, version, s.ID(), node, attempt, r.Encrypted, r.Signed})
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
	listed, err := v.hostKeys(v.node)
	if err != nil || !slices.ContainsFunc(listed, trust.Recipient.IsSSH) {
		return nil, err
	}
	ids, err := v.keys.read()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		isListed := func(key trust.Recipient) bool { return key.Text == id.Recipient.Text }
		if id.Recipient.IsSSH() && slices.ContainsFunc(listed, isListed) {
			return id.Sign(message)
		}
	}
	return nil, fmt.Errorf("%s has another SSH key for this host than it has: mend it below hosts", render.SecretsFile)
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

// hostKeys are the keys of a host, of the first repository that names it.
func (v *vouches) hostKeys(name string) ([]trust.Recipient, error) {
	v.once.Do(func() {
		for _, l := range v.program.repo.Layers() {
			rules, err := secrets.Read(v.program.repo, l)
			if err != nil {
				v.failed = err
				return
			}
			v.rules = append(v.rules, rules)
		}
	})
	for _, rules := range v.rules {
		if keys := rules.HostKeys(name); len(keys) > 0 {
			return keys, v.failed
		}
	}
	return nil, v.failed
}
