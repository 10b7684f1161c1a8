package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// ParseDigest reads the parameter digest.
func ParseDigest(text string) (Digest, error) {
	hexed, named := strings.CutPrefix(text, "sha256:")
	data, err := hex.DecodeString(hexed)
	if !named || err != nil || len(data) != sha256.Size {
		return Digest{}, apply.BadParam(
			"digest",
			"%q is no digest: write sha256: and 64 hexadecimal digits, as sha256sum prints them",
			text,
		)
	}
	return Digest(data), nil
}

// Digest is a SHA-256 sum.
type Digest [sha256.Size]byte

// String is the digest as ParseDigest reads it.
func (d Digest) String() string { return fmt.Sprintf("sha256:%x", d[:]) }

// DigestOf is the digest of a file on the host, of at most MaxSize bytes.
func DigestOf(at *hostfile.Entry) (Digest, error) {
	sum := sha256.New()
	err := at.CopyTo(sum, MaxSize)
	return Digest(sum.Sum(nil)), err
}
