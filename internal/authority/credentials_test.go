package authority

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestInspect(t *testing.T) {
	a := created(t, "prod", noon)
	s := Subject{Fleet: "prod", Name: "web1", Kind: Node}
	credentials := credentialsOf(t, a, s, nil, noon)
	c, err := Inspect(credentials)
	if err != nil || c.Subject != s || c.Serial == "" || c.Issuer == "" {
		t.Fatal(c, err)
	}
	// The life begins an hour before noon.
	if want := noon.Add(-time.Hour).Add((DefaultLife + time.Hour) * 2 / 3); c.RenewAt().Sub(want).Abs() > time.Second {
		t.Errorf("it is renewed at %s, not at %s", c.RenewAt(), want)
	}
	key, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		text []byte
		err  string
	}{
		"nothing": {nil, "there is none in the text"}, "a key": {key, "there is none in the text"}, "a request": {csr, "there is none in the text"},
		"an authority": {a.Bundle(), "does not name a fleet"}, "cut off": {credentials[:len(credentials)-20], "the text is damaged"},
		"no DER": {pemOf(certType, []byte("x")), "read the certificate"},
	} {
		_, err := Inspect(c.text)
		wantError(t, what, err, c.err)
	}
}

// TestRenewAt: a certificate is renewed while it is valid, with a third of its life left.
func TestRenewAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		life := time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "life"))
		c := Certificate{NotBefore: noon, NotAfter: noon.Add(life)}
		if at := c.RenewAt(); at.Before(noon) || !at.Before(c.NotAfter) || (life-at.Sub(noon)-life/3).Abs() > 3 {
			t.Fatal(at)
		}
	})
}

func FuzzInspect(f *testing.F) {
	a := created(f, "prod", noon)
	f.Add(credentialsOf(f, a, Subject{"prod", "web1", Node}, nil, noon))
	f.Add(credentialsOf(f, a, Subject{"prod", "etcd1", Server}, []string{"etcd1", "::1"}, noon))
	f.Add(a.Encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Inspect(text)
		if err != nil {
			return
		}
		if err := c.check(); err != nil {
			t.Errorf("it names nobody that can have one: %v", err)
		}
		if c.NotBefore.Before(c.NotAfter) && (c.RenewAt().Before(c.NotBefore) || c.RenewAt().After(c.NotAfter)) {
			t.Errorf("from %s to %s, and renewed at %s", c.NotBefore, c.NotAfter, c.RenewAt())
		}
	})
}
