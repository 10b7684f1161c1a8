package authority

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestInvitation(t *testing.T) {
	i, token, err := Invite("web1", Node, "ada", noon)
	if err != nil {
		t.Fatal(err)
	}
	other, otherToken, err := Invite("web1", Node, "ada", noon)
	if err != nil || other.ID == i.ID || otherToken == token || other.Hash == i.Hash {
		t.Fatal("two invitations are the same", err)
	}
	if id, err := TokenID(token); err != nil || id != i.ID || len(id) != 16 {
		t.Error(id, err)
	}
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	if secret := token[len(i.ID)+1:]; strings.Contains(string(text), secret) {
		t.Error("the invitation has the secret")
	}
	if want := `{"id":"` + i.ID + `","name":"web1","kind":"node","hash":"` + i.Hash + `","until":"2026-06-01T12:00:00Z","by":"ada"}`; string(text) != want {
		t.Errorf("%s, not %s", text, want)
	}
	before := noon.Add(-time.Nanosecond)
	for what, c := range map[string]struct {
		i     Invitation
		token string
		at    time.Time
		err   string
	}{
		"in time":             {i, token, before, ""},
		"at the end":          {i, token, noon, "the invitation of web1 ended at 2026-06-01T12:00:00Z; pullet fleet invite web1 makes another one"},
		"another's":           {i, otherToken, before, "the token is wrong"},
		"wrong and late":      {i, otherToken, noon, "the token is wrong"},
		"another ID":          {i, other.ID + token[16:], before, "the token is wrong"},
		"empty":               {i, "", before, "the token is wrong"},
		"no invitation":       {Invitation{}, token, before, "the token is wrong"},
		"an empty invitation": {Invitation{Until: noon}, "", before, "the token is wrong"},
	} {
		err := c.i.Opens(c.token, c.at)
		wantError(t, what, err, c.err)
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: %T is not said to who asks", what, err)
		}
	}
}

// TestTokenID: one token has one spelling, and what has another one is no token.
func TestTokenID(t *testing.T) {
	_, token, err := Invite("root", Keeper, "ada", noon)
	if err != nil {
		t.Fatal(err)
	}
	id, secret, _ := strings.Cut(token, ".")
	for what, text := range map[string]string{
		"empty": "", "a dot": ".", "no secret": id, "no ID": "." + secret, "upper case": "ABCDEF0123456789." + secret, "a line end": token + "\n",
		"a line end inside": id + "." + secret[:10] + "\n" + secret[10:], "padded": token + "=", "longer": token + "AAAA", "shorter": token[:len(token)-4],
		"a path": "../" + id[3:] + "." + secret, "huge": strings.Repeat("a", 1<<20),
	} {
		if id, err := TokenID(text); err == nil {
			t.Errorf("%s: it is the token of %s", what, id)
		}
	}
}

func TestInviteRefuses(t *testing.T) {
	for what, s := range map[string]Subject{
		"the keeper's name": {Name: "root", Kind: Node}, "no name": {Kind: Node}, "no kind": {Name: "web1"}, "a slash": {Name: "a/b", Kind: Node},
	} {
		if _, token, err := Invite(s.Name, s.Kind, "ada", noon); err == nil || token != "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
