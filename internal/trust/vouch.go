package trust

import (
	"bytes"
	"errors"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// resultNamespace keeps signatures over what hosts tell each other apart from those that the same key makes for other
// purposes.
const resultNamespace = "pullet-result"

// Sign signs what a host tells others, in the format PROTOCOL.sshsig of OpenSSH. Only SSH keys without a passphrase
// can.
func (id Identity) Sign(message []byte) ([]byte, error) {
	if id.signer == nil {
		return nil, errors.New("this key cannot sign")
	}
	sig, err := sshsig.Sign(bytes.NewReader(message), id.signer, sshsig.HashSHA512, resultNamespace)
	if err != nil {
		return nil, err
	}
	return sshsig.Armor(sig), nil
}

// Verify is an error where the key did not sign the message.
func (r Recipient) Verify(message, signature []byte) error {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.Text))
	if err != nil {
		return err
	}
	sig, err := sshsig.Unarmor(signature)
	switch {
	case err != nil:
		return errors.New("there is no signature that can be read")
	case !bytes.Equal(sig.PublicKey.Marshal(), key.Marshal()):
		return errors.New("it is signed by another key")
	case sig.Signature.Format == ssh.KeyAlgoRSA:
		return errors.New("it is signed over SHA-1, which is not safe")
	}
	return sshsig.Verify(bytes.NewReader(message), sig, key, sig.HashAlgorithm, resultNamespace)
}
