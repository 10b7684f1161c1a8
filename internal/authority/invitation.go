package authority

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

const (
	idBytes     = 8
	secretBytes = 32
)

// Invitation is what the fleet keeps of a token: with the token somebody gets the certificate of a Name and Kind. It
// has a hash in the place of the token, so who reads it cannot use it.
type Invitation struct {
	ID    string    `json:"id"` // of the token, 16 hexadecimal digits: no secret
	Name  string    `json:"name"`
	Kind  Kind      `json:"kind"`
	Hash  string    `json:"hash"` // hexadecimal
	Until time.Time `json:"until"`
	By    string    `json:"by"` // who invites
}

// Invite makes an invitation that ends at a time, and its token, a secret that only the one who is invited keeps. That
// a token is used once is the caller's to see to. It fails for a name that a certificate cannot have: see Subject.
func Invite(name string, kind Kind, by string, until time.Time) (i Invitation, token string, err error) {
	if err := (Subject{Fleet: "any", Name: name, Kind: kind}).check(); err != nil {
		return Invitation{}, "", fmt.Errorf("invite: %w", err)
	}
	var random [idBytes + secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	token = tokenOf(random[:idBytes], random[idBytes:])
	id := hex.EncodeToString(random[:idBytes])
	return Invitation{ID: id, Name: name, Kind: kind, Hash: hashOf(token), Until: until, By: by}, token, nil
}

// Opens says why a token may not use the invitation at a time: a *Refusal. Only who has the token learns whether the
// invitation ended.
func (i Invitation) Opens(token string, now time.Time) error {
	if subtle.ConstantTimeCompare([]byte(hashOf(token)), []byte(i.Hash)) != 1 {
		return wrongToken()
	}
	if !now.Before(i.Until) {
		return refusal("the invitation of %s ended at %s; pullet fleet invite %s makes another one",
			i.Name, moment(i.Until), i.Name)
	}
	return nil
}

// TokenID is the ID of the invitation that a token is for. A text that cannot be a token is a *Refusal.
func TokenID(token string) (string, error) {
	id, secret, _ := strings.Cut(token, ".")
	first, err := hex.DecodeString(id)
	if err != nil || len(first) != idBytes {
		return "", wrongToken()
	}
	second, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil || len(second) != secretBytes || tokenOf(first, second) != token { // decoders are lenient
		return "", wrongToken()
	}
	return id, nil
}

func tokenOf(id, secret []byte) string {
	return hex.EncodeToString(id) + "." + base64.RawURLEncoding.EncodeToString(secret)
}

func wrongToken() *Refusal { return refusal("the token is wrong") }

func hashOf(token string) string {
	sum := sha256.Sum256([]byte("pullet-invitation-v1\x00" + token))
	return hex.EncodeToString(sum[:])
}
