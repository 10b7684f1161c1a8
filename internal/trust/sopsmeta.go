package trust

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v4"
)

// sopsMeta is what SOPS keeps in a file for itself. None of it is authenticated but the time, by the MAC.
type sopsMeta struct {
	age           []sopsRecipient
	others        []string // the kinds of other keys that it is encrypted for
	modified      string   // RFC 3339
	mac           string
	onlyEncrypted bool // the MAC is over the encrypted values alone
	rule          *sopsRule
}

// sopsRecipient is the data key, encrypted for one age key.
type sopsRecipient struct {
	recipient string
	enc       string // armored
}

// sopsKinds are where SOPS keeps data keys beside age; those of key_groups are in parts.
var sopsKinds = []string{"kms", "gcp_kms", "hckms", "azure_kv", "hc_vault", "pgp", "key_groups"}

// readSOPSMeta reads the map "sops" of a file.
func readSOPSMeta(n *yaml.Node) (*sopsMeta, error) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, errors.New(`it is not a file of SOPS: it has no map "sops"`)
	}
	m := &sopsMeta{mac: scalar(n, "mac"), modified: scalar(n, "lastmodified")}
	version := scalar(n, "version")
	if v, err := semver.StrictNewVersion(version); err != nil || v.Major() != 3 {
		return nil, fmt.Errorf("it says it is of version %.50q of SOPS: only 3 is supported", version)
	}
	at, err := time.Parse(time.RFC3339, m.modified)
	if err != nil || at.Format(time.RFC3339) != m.modified {
		return nil, fmt.Errorf("lastmodified of SOPS is not a time as SOPS writes it: %.50q", m.modified)
	}
	if m.onlyEncrypted, err = sopsFlag(n, "mac_only_encrypted"); err != nil {
		return nil, err
	}
	if m.rule, err = readSOPSRule(n); err != nil {
		return nil, err
	}
	for _, kind := range sopsKinds {
		if list := below(n, kind); list != nil && len(list.Content) > 0 {
			m.others = append(m.others, kind)
		}
	}
	return m, m.readRecipients(n)
}

// scalar is the text of a key, "" where there is none.
func scalar(n *yaml.Node, key string) string {
	if v := below(n, key); v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null" {
		return v.Value
	}
	return ""
}

// sopsFlag is the truth of a key, false where there is none.
func sopsFlag(n *yaml.Node, key string) (is bool, err error) {
	if v := below(n, key); v != nil {
		err = v.Decode(&is)
	}
	if err != nil {
		return false, fmt.Errorf("%s of SOPS is neither true nor false", key)
	}
	return is, nil
}

// readRecipients reads for whom the data key is encrypted with age.
func (m *sopsMeta) readRecipients(n *yaml.Node) error {
	list := below(n, "age")
	if list == nil {
		return nil
	}
	if list.Kind != yaml.SequenceNode || len(list.Content) > maxSOPSRecipients {
		return fmt.Errorf("line %d: age of SOPS is not a list of at most %d", list.Line, maxSOPSRecipients)
	}
	for _, item := range list.Content {
		m.age = append(m.age, sopsRecipient{recipient: scalar(item, "recipient"), enc: scalar(item, "enc")})
	}
	return nil
}

// dataKey is the key of the values, as one of the identities opens it.
func (m *sopsMeta) dataKey(identities []age.Identity) ([]byte, error) {
	if len(m.age) == 0 {
		has := cmp.Or(strings.Join(m.others, ", "), "no other keys either")
		return nil, fmt.Errorf("it is not encrypted for age keys, which alone are supported: it has %s", has)
	}
	if len(identities) == 0 {
		return nil, ErrNotRecipient
	}
	var failed error
	for i, r := range m.age {
		key, err := r.open(identities)
		var none *age.NoIdentityMatchError
		switch {
		case err == nil:
			return key, nil
		case !errors.As(err, &none):
			failed = cmp.Or(failed, fmt.Errorf("the data key for recipient %d of age cannot be read: %w", i+1, err))
		}
	}
	return nil, cmp.Or(failed, ErrNotRecipient)
}

// sopsDataKey is the length of a data key: AES-256.
const sopsDataKey = 32

// open decrypts the data key.
func (r sopsRecipient) open(identities []age.Identity) ([]byte, error) {
	in, err := age.Decrypt(armor.NewReader(strings.NewReader(r.enc)), identities...)
	if err != nil {
		return nil, err
	}
	key, err := io.ReadAll(io.LimitReader(in, sopsDataKey+1))
	if err != nil {
		return nil, err
	}
	if len(key) != sopsDataKey {
		return nil, fmt.Errorf("it does not have %d bytes", sopsDataKey)
	}
	return key, nil
}
