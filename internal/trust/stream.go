package trust

import (
	"errors"
	"io"

	"filippo.io/age"
)

// SealStream encrypts what is written, of any length, for all recipients, in the binary form of age. It is whole after
// Close.
func SealStream(out io.Writer, to []Recipient) (io.WriteCloser, error) {
	if len(to) == 0 {
		return nil, errors.New("nobody could read it: no recipient is named")
	}
	var keys []age.Recipient
	for _, r := range to {
		keys = append(keys, r.to)
	}
	return age.Encrypt(out, keys...)
}

// SealedStream reports a text that begins as SealStream writes it.
func SealedStream(begin []byte) bool {
	return len(begin) >= len(streamHeader) && string(begin[:len(streamHeader)]) == streamHeader
}

const streamHeader = "age-encryption.org/v1\n"

// UnsealStream decrypts what SealStream wrote. The error is ErrNotRecipient where none of the identities is meant. What
// was read counts when it ends with io.EOF, and not before: another error says that it was cut off or changed.
func UnsealStream(in io.Reader, ids []Identity) (io.Reader, error) {
	var keys []age.Identity
	for _, id := range ids {
		keys = append(keys, id.key)
	}
	if len(keys) == 0 {
		return nil, ErrNotRecipient
	}
	r, err := age.Decrypt(in, keys...)
	var stranger *age.NoIdentityMatchError
	switch {
	case errors.As(err, &stranger):
		return nil, ErrNotRecipient
	case err != nil:
		return nil, damaged(err)
	}
	return &unsealing{r}, nil
}

// unsealing says what an error of the library means.
type unsealing struct{ io.Reader }

func (u *unsealing) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = errors.New("it is cut off, or it was changed after it was encrypted")
	}
	return n, err
}
