package trust

import (
	"bytes"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"
)

// extensionNamespace keeps signatures over extensions apart from those that the same key makes for other purposes.
const extensionNamespace = "pullet-extension"

// VerifyExtension says who signed the text of an extension. The key has to be valid at that time: an SSH signature does
// not tell when it was made. The error is a *SignatureError.
func (k *Keys) VerifyExtension(s Signed, at time.Time) (Signer, error) {
	if err := CheckExtension(s.Signature); err != nil {
		return Signer{}, err
	}
	return verifySSH(k.ssh, s, extensionNamespace, at)
}

// CheckExtension finds what is wrong with an extension's signature, whoever made it and over whatever text. The error
// is a *SignatureError.
func CheckExtension(signature []byte) error {
	switch {
	case len(signature) > maxSignature:
		return &SignatureError{Why: fmt.Sprintf("has a signature of more than %d KiB", maxSignature>>10)}
	case !bytes.HasPrefix(signature, []byte(sshArmor)):
		return &SignatureError{
			Why: "has a signature that is not of SSH: make one with ssh-keygen -Y sign -n " + extensionNamespace,
		}
	}
	sig, err := readSSH(signature)
	if err != nil {
		return err
	}
	if sig.Namespace != extensionNamespace {
		return &SignatureError{
			Key: ssh.FingerprintSHA256(sig.PublicKey),
			Why: fmt.Sprintf("is signed for the namespace %+q: sign it with ssh-keygen -Y sign -n %s",
				sig.Namespace, extensionNamespace),
		}
	}
	return nil
}
