package trust

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// gitNamespace keeps signatures of git apart from those that the same key makes for other purposes.
const gitNamespace = "git"

// notListed is why most keys may not sign.
const notListed = "is not listed"

// verifySSH says which allowed signer made a signature in a namespace. The format is PROTOCOL.sshsig of OpenSSH.
func verifySSH(allowed []allowedSigner, s Signed, namespace string, at time.Time) (Signer, error) {
	sig, err := readSSH(s.Signature)
	if err != nil {
		return Signer{}, err
	}
	key := ssh.FingerprintSHA256(sig.PublicKey)
	names, why := allowedAs(allowed, sig.PublicKey, namespace, at)
	if why != "" {
		return Signer{}, &SignatureError{
			Key:      key,
			Why:      fmt.Sprintf("is signed by key %s, which %s", key, why),
			Unlisted: why == notListed,
		}
	}
	err = sshsig.Verify(bytes.NewReader(s.Payload), sig, sig.PublicKey, sig.HashAlgorithm, namespace)
	if err != nil {
		return Signer{}, &SignatureError{
			Key: key,
			Why: fmt.Sprintf("has a signature of key %s that is not valid: %v", key, err),
		}
	}
	return Signer{Key: key, Names: names}, nil
}

// readSSH reads a signature, and refuses one that nobody should make any more.
func readSSH(signature []byte) (*sshsig.Signature, error) {
	sig, err := sshsig.Unarmor(signature)
	if err != nil {
		return nil, &SignatureError{Why: "has an SSH signature that cannot be read: " + err.Error()}
	}
	if sig.Signature.Format == ssh.KeyAlgoRSA { // over SHA-1
		key := ssh.FingerprintSHA256(sig.PublicKey)
		return nil, &SignatureError{Key: key, Why: "has a signature of key " + key + " over SHA-1, which is not safe"}
	}
	return sig, nil
}

// allowedAs are the names that a key may sign as in a namespace at a time, or why it may not.
func allowedAs(
	allowed []allowedSigner,
	key ssh.PublicKey,
	namespace string,
	at time.Time,
) (names []string, why string) {
	why, found := notListed, false
	for _, a := range allowed {
		switch {
		case !bytes.Equal(a.key, key.Marshal()):
		case !a.namespaces.match(namespace):
			why = fmt.Sprintf("is not listed for the namespace %q", namespace)
		case !a.validAt(at):
			why = "is not valid on " + at.UTC().Format(time.DateOnly)
		default:
			names, found = append(names, a.principals...), true
		}
	}
	if !found {
		return nil, why
	}
	return slices.Compact(names), ""
}
