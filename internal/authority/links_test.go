package authority

import (
	"bytes"
	"slices"
	"testing"
)

// TestFollow: who believes an authority follows it to the next ones, however many it missed, and to nobody else.
func TestFollow(t *testing.T) {
	next := func(a *Authority) *Authority {
		t.Helper()
		b, err := a.Rotate(noon)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := created(t, "prod", noon)
	second := next(first)
	third := next(second.Finish())
	stranger, elsewhere := created(t, "prod", noon), created(t, "other", noon)
	forged := next(stranger)
	for _, c := range []struct {
		what                    string
		believed, offered, from *Authority
		want                    string
	}{
		{"the same", first, first, first, ""},
		{"both", first, second, second, ""},
		{"the next one alone", first, second.Finish(), second, ""},
		{"the next one, and what both believed before", second, second.Finish(), second, ""},
		{"the one after the next", first, third.Finish(), third, ""},
		{"the one before", second.Finish(), first, second, "for which no authority vouches that this host believes"},
		{"a stranger", first, stranger, second, "for which no authority vouches that this host believes"},
		{"a stranger beside the one that is believed", first, beside(first, stranger), second, "for which no authority vouches"},
		{"a stranger, for whom another one vouches", first, forged, forged, "for which no authority vouches that this host believes"},
		{"without links", first, second.Finish(), first, "for which no authority vouches that this host believes"},
		{"of another fleet", first, elsewhere, second, "for which no authority vouches that this host believes"},
	} {
		wantError(t, c.what, Follow(c.believed.Bundle(), c.offered.Bundle(), c.from.Links()), c.want)
	}
	wantError(t, "certificates in the place of links", Follow(first.Bundle(), second.Bundle(), second.Bundle()), "in the place of a link")
	wantError(t, "an empty bundle", Follow(first.Bundle(), nil, second.Links()), "0 certificates of authorities")
}

// beside is an authority that believes another one, too, for which nobody vouched.
func beside(a, b *Authority) *Authority {
	return &Authority{fleet: a.fleet, key: a.key, certificates: slices.Concat(a.certificates, b.certificates), links: a.links}
}

// TestLinksAreKept: an authority that is written and read still has what vouches for it.
func TestLinksAreKept(t *testing.T) {
	a := created(t, "prod", noon)
	for range 3 {
		b, err := a.Rotate(noon)
		if err != nil {
			t.Fatal(err)
		}
		a = b.Finish()
	}
	again, err := Parse(a.Encode())
	if err != nil || !bytes.Equal(again.Links(), a.Links()) || len(a.links) != 3 || !bytes.Equal(again.Encode(), a.Encode()) {
		t.Errorf("%v: %d links", err, len(a.links))
	}
}

// TestFits: a certificate is used only with its key, for its holder, and where the bundle believes it.
func TestFits(t *testing.T) {
	a, other := created(t, "prod", noon), created(t, "prod", noon)
	web1 := Subject{Fleet: "prod", Name: "web1", Kind: Node}
	key, csr, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.Issue(csr, web1, nil, DefaultLife, noon)
	if err != nil {
		t.Fatal(err)
	}
	strange, _, err := Request()
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "its own", Fits(key, chain, a.Bundle(), web1, noon), "")
	wantError(t, "another key", Fits(strange, chain, a.Bundle(), web1, noon), "private key does not match public key")
	wantError(t, "another name", Fits(key, chain, a.Bundle(), Subject{Fleet: "prod", Name: "web2", Kind: Node}, noon), "it is for node web1 of the fleet prod")
	wantError(t, "an operator", Fits(key, chain, a.Bundle(), Subject{Fleet: "prod", Name: "web1", Kind: Operator}, noon), "it is for node web1")
	wantError(t, "another authority", Fits(key, chain, other.Bundle(), web1, noon), "the fleet's authority did not sign it")
	wantError(t, "too late", Fits(key, chain, a.Bundle(), web1, noon.Add(2*DefaultLife)), "it ended at")
	wantError(t, "no certificate", Fits(key, nil, a.Bundle(), web1, noon), "there is none in the text")
}

// TestExpect: who expects the next authority believes what it signs, and signs nothing with it. Only what Rotate made
// of the one that signs now is expected: none that another key made, none from before, and none of a later rotation.
func TestExpect(t *testing.T) {
	next := func(a *Authority) *Authority {
		t.Helper()
		b, err := a.Rotate(noon)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := created(t, "prod", noon)
	second := next(first)
	both, err := first.Expect(second)
	if err != nil {
		t.Fatal(err)
	}
	if both.Fingerprint() != first.Fingerprint() || !both.Rotating() || first.Rotating() {
		t.Error("another one signs, or nothing is expected: ", both.Fingerprint())
	}
	wantError(t, "who believed the first one follows", Follow(first.Bundle(), both.Bundle(), both.Links()), "")
	wantError(t, "and from there to the next one", Follow(both.Bundle(), second.Bundle(), second.Links()), "")
	again, err := Parse(both.Encode())
	if err != nil || !bytes.Equal(again.Encode(), both.Encode()) {
		t.Error("it cannot be kept: ", err)
	}
	stranger := created(t, "prod", noon)
	linked := &Authority{fleet: "prod", key: stranger.key, certificates: slices.Concat(stranger.certificates, first.certificates),
		links: second.links}
	other := next(first)
	more := &Authority{fleet: "prod", key: second.key, certificates: slices.Concat(second.certificates, stranger.certificates),
		links: second.links}
	for _, c := range []struct {
		what     string
		of, next *Authority
		want     string
	}{
		{"another one in its place", both, other, ""},
		{"the same again", both, second, ""},
		{"a stranger", first, stranger, "is not the next one of " + first.Fingerprint()},
		{"a stranger with the links of another one", first, linked, "is not the next one of "},
		{"a stranger beside it", first, more, "is not the next one of "},
		{"itself", first, first, "is not the next one of "},
		{"the one after the next", first, next(second.Finish()), "is not the next one of "},
		{"the finished one", first, second.Finish(), "is not the next one of "},
		{"the one that signs already", second, second, "is not the next one of "},
		{"back", second.Finish(), second, "is not the next one of "},
		{"back to what was believed before", second.Finish(), first, "is not the next one of "},
		{"of another fleet", created(t, "other", noon), second, "is not the next one of "},
	} {
		_, err := c.of.Expect(c.next)
		wantError(t, c.what, err, c.want)
	}
}
