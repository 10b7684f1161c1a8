package pkg_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

const aKey = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----\n"

// TestRepositoryKeyFromURL: a key is fetched when it is missing, and only taken with its digest.
func TestRepositoryKeyFromURL(t *testing.T) {
	t.Parallel()
	asked, key := 0, aKey
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/key" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, key)
	}))
	defer web.Close()
	s := actiontest.New(t, "d etc/apt 755", "f etc/apt/keyrings/app.gpg 644 old")
	params := func(path, key string) string {
		return fmt.Sprintf("{name: app, url: 'https://example.org/', suites: ./, keySource: %s/%s, keyDigest: 'sha256:%x'}", web.URL, path, sha256.Sum256([]byte(key)))
	}
	p := s.MustBind("pkgrepo.managed", params("key", aKey))
	if r := s.Plan(p); r.Summary != "key, add the repository" || asked > 0 {
		t.Errorf("plan: %q %s, asked %d times", r.Summary, r.Reason, asked)
	}
	for range 2 {
		if r := s.Run(p); r.Outcome == apply.Failed || asked != 1 {
			t.Errorf("%s %s, asked %d times, want once", r.Outcome, r.Reason, asked)
		}
	}
	if s.Read("etc/apt/keyrings/app.asc") != aKey || s.Tree()[s.Path("etc/apt/keyrings/app.gpg")] != "" {
		t.Error("the key is not there, or an old one still is")
	}
	if got := s.Read("etc/apt/sources.list.d/app.sources"); !strings.Contains(got, "Signed-By: /etc/apt/keyrings/app.asc\n") {
		t.Errorf("it is not named:\n%s", got)
	}
	before := s.Tree()
	for params, want := range map[string]string{
		params("key", "another"):  "/key: it serves sha256:",
		params("nope", "another"): "/nope: the server says 404 Not Found",
	} {
		if r := s.Run(s.MustBind("pkgrepo.managed", params)); r.Outcome != apply.Failed || !strings.Contains(r.Reason, want) {
			t.Errorf("%s %q, want failed with %q", r.Outcome, r.Reason, want)
		}
	}
	key = strings.Repeat("x", 2<<20)
	if r := s.Run(s.MustBind("pkgrepo.managed", params("key", key))); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "that is no key") {
		t.Errorf("a large one: %s %q, want failed", r.Outcome, r.Reason)
	}
	for _, d := range actiontest.Differences(before, s.Tree()) {
		t.Errorf("a failed run changed %s", d)
	}
}
