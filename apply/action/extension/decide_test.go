package extension

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/render"
)

var someDigest = strings.Repeat("0a", 32)

// TestSuits: which signed texts a manifest is content with: those for its action, of its version or a newer one, with
// its digest where it has one.
func TestSuits(t *testing.T) {
	other := strings.Repeat("0b", 32)
	for _, c := range []struct{ text, least, digest, want string }{
		{"acme.it 4 sha256:" + someDigest + "\n", "4", "", ""},
		{"acme.it 4 sha256:" + someDigest, "4", someDigest, ""},
		{"acme.it 4.0.1 sha256:" + someDigest, "4", "", ""},
		{"acme.it 4 sha256:" + someDigest, "4.0.0.0", "", ""},
		{"acme.it 10 sha256:" + someDigest, "9", "", ""},
		{"acme.it 1.10 sha256:" + someDigest, "1.9.9", "", ""},
		{"acme.it 2026.09.01 sha256:" + someDigest, "2026.8.31", "", ""},
		{"acme.it 3 sha256:" + someDigest, "4", "", "is of version 3, and the manifest wants 4 at least"},
		{"acme.it 1.9 sha256:" + someDigest, "1.10", "", "is of version 1.9, and the manifest wants 1.10 at least"},
		{"acme.it 4 sha256:" + someDigest, "4.0.0.1", "", "is of version 4, and the manifest wants 4.0.0.1 at least"},
		{"acme.other 4 sha256:" + someDigest, "4", "", `is for the action "acme.other", and not for "acme.it"`},
		{"Acme.it 4 sha256:" + someDigest, "4", "", `is for the action "Acme.it", and not for "acme.it"`},
		{"acme.it 4 sha256:" + someDigest, "4", other, "names sha256:" + someDigest + ", and the manifest wants sha256:" + other},
	} {
		text, err := parseSigned([]byte(c.text))
		if err == nil {
			err = text.suits(&render.Extension{Name: "acme.it", Version: c.least, Digest: c.digest})
		}
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%q, at least %s: %v, want %q", c.text, c.least, err, c.want)
		}
	}
}

// TestSignedTexts that say something else, or say it in another way.
func TestSignedTexts(t *testing.T) {
	for _, text := range []string{
		"", "\n", "#!/bin/sh\n", "acme.it 4", "acme.it 4 " + someDigest, "acme.it 4 sha256:" + someDigest + "00", "acme.it 4 sha256:" + strings.ToUpper(someDigest),
		"acme.it  4 sha256:" + someDigest, "acme.it\t4 sha256:" + someDigest, " acme.it 4 sha256:" + someDigest, "acme.it 4 sha256:" + someDigest + " ", "acme.it 4 sha256:" + someDigest + "\r\n",
		"acme.it 4 sha256:" + someDigest + "\n\n", "acme.it 4 sha256:" + someDigest + "\nacme.it 5 sha256:" + someDigest + "\n", "acme.it v4 sha256:" + someDigest, "acme.it -4 sha256:" + someDigest,
	} {
		if got, err := parseSigned([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), `does not say "ACTION VERSION sha256:DIGEST" in one line, but "`) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for _, version := range []string{".", "1.", ".1", "1..2", "1.2.3.4.5", "1234567890"} {
		if got, err := parseSigned([]byte("acme.it " + version + " sha256:" + someDigest)); err == nil || !strings.HasPrefix(err.Error(), "names no version: ") {
			t.Errorf("%q: %+v %v", version, got, err)
		}
	}
}

// FuzzSigned: whatever stands in a signed text is read in one way, or refused.
func FuzzSigned(f *testing.F) {
	for _, seed := range []string{"", "acme.it 4 sha256:" + someDigest + "\n", "acme.it 1.10.2.3 sha256:" + someDigest, "a 1..2 sha256:" + someDigest, "a 4 sha256:" + someDigest + "\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSigned([]byte(text))
		if err != nil {
			if len(err.Error()) > 500 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if again := s.action + " " + s.written + " sha256:" + s.digest; again != strings.TrimSuffix(text, "\n") {
			t.Errorf("%q is read as %q", text, again)
		}
		if err := s.suits(&render.Extension{Name: s.action, Version: s.written, Digest: s.digest}); err != nil {
			t.Errorf("%q does not suit itself: %v", text, err)
		}
	})
}
