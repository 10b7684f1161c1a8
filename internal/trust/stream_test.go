package trust

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"filippo.io/age"
)

// TestStream: what is encrypted as a stream comes back whole, and what was cut off or changed ends with an error.
func TestStream(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to, err := ParseRecipient(key.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := ParseIdentities(File{Name: "key", Content: []byte(key.String())}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789"), 20_000) // in four parts
	var sealed bytes.Buffer
	w, err := SealStream(&sealed, []Recipient{to})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil || w.Close() != nil || !SealedStream(sealed.Bytes()) {
		t.Fatal(err)
	}
	open := func(sealed []byte, ids []Identity) ([]byte, error) {
		r, err := UnsealStream(bytes.NewReader(sealed), ids)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	if got, err := open(sealed.Bytes(), ids); err != nil || !bytes.Equal(got, text) {
		t.Error(len(got), err)
	}
	if _, err := open(sealed.Bytes(), nil); !errors.Is(err, ErrNotRecipient) {
		t.Error(err)
	}
	if _, err := SealStream(&sealed, nil); err == nil {
		t.Error("it is encrypted for nobody")
	}
	if SealedStream([]byte("age-encryption.org/v1")) || SealedStream(text) {
		t.Error("another text counts as encrypted")
	}
	for at := 300; at < sealed.Len(); at += 9_999 {
		changed := bytes.Clone(sealed.Bytes())
		changed[at] ^= 1
		for _, bad := range [][]byte{changed, sealed.Bytes()[:at]} {
			_, err := open(bad, ids)
			if err == nil || err.Error() != "it is cut off, or it was changed after it was encrypted" {
				t.Errorf("%d: %v", at, err)
			}
		}
	}
}
