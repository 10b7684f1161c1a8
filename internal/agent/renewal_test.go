package agent

import (
	"crypto/tls"
	"os"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

// TestRenewal: a host and an operator get their next certificate over two pulls, also where each of them is killed
// behind each of its writes. Whenever that is, the file of credentials is whole.
func TestRenewal(t *testing.T) {
	t.Parallel()
	f := newFounder(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	f.serves()
	for name, files := range map[string]state.TLS{"web1": f.Etcd.TLS, "admin": f.Etcd.Operator} {
		config := f.store()
		config.TLS = files
		store, err := state.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		r := renewal{files, store, time.Now()}
		first := contentOf(t, files.Cert)
		if r.keeps(t) || string(contentOf(t, files.Cert)) != string(first) {
			t.Error("renewed before it is time")
		}
		r.now = r.now.Add(authority.DefaultLife/3*2 + time.Hour)
		if _, _, err := r.next(); err != nil { // killed behind the first write
			t.Fatal(err)
		}
		waits := contentOf(t, files.Cert+nextFile)
		if r.keeps(t) {
			t.Error("there was an answer before it was asked")
		}
		f.answered(store, name, string(first))
		if !r.keeps(t) {
			t.Error("the next certificate is not in use")
		}
		second := contentOf(t, files.Cert)
		if err := os.WriteFile(files.Cert+nextFile, waits, 0o600); err != nil { // killed behind the last write but one
			t.Fatal(err)
		}
		r.keeps(t)
		if string(contentOf(t, files.Cert)) != string(second) {
			t.Error("another certificate came of nothing")
		}
		r.keeps(t)
		f.answered(store, name, string(second))
		if !r.keeps(t) || string(contentOf(t, files.Cert)) == string(second) {
			t.Error("the certificate after that is not in use")
		}
		for file, text := range map[string][]byte{"first": first, "second": second, "third": contentOf(t, files.Cert)} {
			if _, err := tls.X509KeyPair(text, text); err != nil {
				t.Error(name, file, err)
			}
		}
		if _, err := os.Stat(files.Cert + nextFile); err == nil {
			t.Error("a key is left over")
		}
	}
}

func (r renewal) keeps(t *testing.T) bool {
	t.Helper()
	_, fleet, err := r.store.Identities.Issued(t.Context(), "web1")
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.keep(t.Context(), fleet)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// answered waits until the keeper issued another certificate than that of credentials.
func (f *founder) answered(store *state.Store, name, credentials string) {
	f.t.Helper()
	has, err := authority.Inspect([]byte(credentials))
	if err != nil {
		f.t.Fatal(err)
	}
	f.until("the next certificate", func() bool {
		id, _, err := store.Identities.Issued(f.t.Context(), name)
		is, bad := authority.Inspect([]byte(id.Certificate))
		return err == nil && bad == nil && is.Serial != has.Serial
	})
}

// TestJoinAgainForgetsKeys: who joins again gets no certificate later for a key of before.
func TestJoinAgainForgetsKeys(t *testing.T) {
	t.Parallel()
	f := newFounder(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	f.serves()
	r := renewal{f.Etcd.TLS, nil, time.Now()}
	if _, _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	store, err := f.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	i, token, err := authority.Invite("web1", authority.Node, "admin", time.Now().Add(time.Hour).UTC())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Identities.Invite(t.Context(), state.Invitation{Invitation: i}); err != nil {
		t.Fatal(err)
	}
	j, err := Join(f.file, f.Root, true)
	if err != nil {
		t.Fatal(err)
	}
	a, err := authority.AskInside(t.Context(), f.Datastore.DoorSocket(), authority.Asked{Token: token, Request: string(j.Request)})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Place(a); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Etcd.TLS.Cert + nextFile); err == nil {
		t.Error("the key of before still waits for a certificate")
	}
}

// TestRenewalSaidAgain: while the authority is exchanged, a host that was cut off when it said which certificate it
// uses says it again: the rotation waits for that.
func TestRenewalSaidAgain(t *testing.T) {
	t.Parallel()
	f := newFounder(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	f.serves()
	if _, err := datastore.Rotate(t.Context(), f.Datastore, false); err != nil {
		t.Fatal(err)
	}
	config := f.store()
	config.TLS = f.Etcd.TLS
	store, err := state.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := renewal{f.Etcd.TLS, store, time.Now()}
	before := contentOf(t, r.files.Cert)
	f.until("its next certificate is in use", func() bool { r.keeps(t); return string(contentOf(t, r.files.Cert)) != string(before) })
	has, err := authority.Inspect(contentOf(t, r.files.Cert))
	if err != nil {
		t.Fatal(err)
	}
	uses := func() string {
		t.Helper()
		id, _, err := store.Identities.Issued(t.Context(), "web1")
		if err != nil {
			t.Fatal(err)
		}
		return id.Uses
	}
	f.until("that is on record", func() bool { return uses() == has.Serial })
	if err := store.Identities.Ask(t.Context(), "web1", state.Request{Uses: "1"}); err != nil {
		t.Fatal(err)
	}
	f.until("another one is", func() bool { return uses() == "1" })
	f.until("it says it again", func() bool { r.keeps(t); return uses() == has.Serial })
}
