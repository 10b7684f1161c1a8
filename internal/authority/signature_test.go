package authority

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"testing"
	"time"
)

// TestSignature: each kind of key signs, and a signature is valid for its own message, purpose, fleet and time alone.
func TestSignature(t *testing.T) {
	a, s := created(t, "prod", noon), Subject{"prod", "ada", Operator}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, rotated := created(t, "prod", noon), created(t, "test", noon)
	for kind, credentials := range map[string][]byte{
		"ECDSA": credentialsOf(t, a, s, nil, noon), "Ed25519": withKey(t, a, edKey, s, noon), "RSA": withKey(t, a, rsaKey, s, noon),
	} {
		signed, err := Sign(credentials, "run", []byte("uptime"))
		if err != nil {
			t.Fatal(kind, err)
		}
		for _, c := range []struct {
			what, purpose, message string
			bundle                 []byte
			at                     time.Time
			err                    string
		}{
			{"as it is", "run", "uptime", a.Bundle(), noon, ""},
			{"another message", "run", "uptime2", a.Bundle(), noon, "did not sign this"},
			{"another purpose", "ru", "uptime", a.Bundle(), noon, "did not sign this"},
			{"a purpose that ends later", "run\x00uptime", "", a.Bundle(), noon, "has to be a word"},
			{"no purpose", "", "uptime", a.Bundle(), noon, "has to be a word"},
			{"another authority of the name", "run", "uptime", other.Bundle(), noon, "did not sign it"},
			{"another fleet", "run", "uptime", rotated.Bundle(), noon, "did not sign it"},
			{"too late", "run", "uptime", a.Bundle(), noon.Add(DefaultLife + time.Second), "it ended at"},
			{"too early", "run", "uptime", a.Bundle(), noon.Add(-2 * time.Hour), "it is valid from"},
			{"no bundle", "run", "uptime", nil, noon, "the bundle of authorities"},
		} {
			who, err := Verify(c.bundle, c.purpose, []byte(c.message), signed, c.at)
			wantError(t, kind+", "+c.what, err, c.err)
			if err == nil && who != s || err != nil && who != (Subject{}) {
				t.Error(kind, c.what, who)
			}
		}
	}
}

func TestSignatureMistakes(t *testing.T) {
	a := created(t, "prod", noon)
	ada, eve := credentialsOf(t, a, Subject{"prod", "ada", Operator}, nil, noon), credentialsOf(t, a, Subject{"prod", "eve", Viewer}, nil, noon)
	signed, err := Sign(eve, "run", []byte("uptime"))
	if err != nil {
		t.Fatal(err)
	}
	var stolen signature
	if err := json.Unmarshal(signed, &stolen); err != nil {
		t.Fatal(err)
	}
	text := func(s signature) []byte {
		made, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for what, c := range map[string]struct {
		signed []byte
		err    string
	}{
		"another's certificate": {text(signature{string(ada), stolen.Signature}), "operator ada did not sign this"},
		"no signature":          {text(signature{Certificate: string(ada)}), "did not sign this"},
		"no certificate":        {text(signature{Signature: stolen.Signature}), "the signer's certificate"},
		"the authority's":       {text(signature{string(a.Bundle()), stolen.Signature}), "does not name a fleet"},
		"no JSON":               {[]byte("x"), "not the JSON that is expected"},
		"nothing":               {nil, "not the JSON that is expected"},
		"a further field":       {[]byte(`{"certificate":"","signature":"","by":"ada"}`), "not the JSON that is expected"},
		"a second value":        {append(signed, "{}"...), "something follows it"},
		"too long":              {make([]byte, maxSignature+1), "more than 65536 bytes"},
	} {
		_, err := Verify(a.Bundle(), "run", []byte("uptime"), c.signed, noon)
		wantError(t, what, err, c.err)
	}
	_, err = Sign(a.Bundle(), "run", nil)
	wantError(t, "no key", err, "the credentials to sign with")
	_, err = Sign(joined(encodeKey(a.key), eve[len(encodeKey(a.key)):]), "run", nil)
	wantError(t, "another key", err, "the credentials to sign with")
	_, err = Sign(ada, "", nil)
	wantError(t, "no purpose", err, "has to be a word")
}

func FuzzVerify(f *testing.F) {
	a := created(f, "prod", noon)
	signed, err := Sign(credentialsOf(f, a, Subject{"prod", "ada", Operator}, nil, noon), "run", []byte("signed"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed, a.Bundle())
	f.Add([]byte(`{"certificate":"","signature":""}`), []byte(nil))
	f.Fuzz(func(t *testing.T, signed, bundle []byte) {
		if who, err := Verify(a.Bundle(), "run", []byte("never signed"), signed, noon); err == nil {
			t.Errorf("%v signed it", who)
		}
		_, _ = Verify(bundle, "run", []byte("signed"), signed, noon) // does not panic
	})
}
