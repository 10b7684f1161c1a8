package puller

import (
	"strings"
	"testing"
	"time"
)

// TestVerifyExpiredKey: with a key that expired nobody signs what hosts did not see before, whatever its date is. A
// host that did not look meanwhile goes by the dates.
func TestVerifyExpiredKey(t *testing.T) {
	u := newSignedUpstream(t, "ops", "dev", "late")
	u.allow(u.line("ops", "") + u.line("dev", `valid-before="20240101Z"`) + u.line("late", `valid-after="20240101Z"`))
	at := func(text string) {
		day, err := time.Parse(time.DateOnly, text)
		must(t, err)
		u.at = day
	}
	at("2023-06-01")
	old := u.add("dev", files{"a": "1"})
	dir := t.TempDir()
	p := open(t, dir, u.source())
	u.set(old)
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	at("2023-06-02")
	late := u.add("dev", files{"a": "late"}, old)
	early := u.add("late", files{"a": "2"}, old)
	fine := u.add("ops", files{"a": "2"}, old)
	u.set(late)
	expectRefusal(t, p, old, "which is not valid on "+time.Now().UTC().Format("2006-"), "when this host last saw the repository without it")
	u.set(u.add("ops", files{"a": "2"}, old, late))
	expectRefusal(t, p, old, "when this host last saw the repository without it")
	u.set(early)
	expectRefusal(t, p, old, "which is not valid on 2023-06-02")
	u.set(fine)
	if h := pull(t, p); h.Problem != nil || h.Commit != fine {
		t.Fatal(h.Problem)
	}
	u.set(late)
	if h := pull(t, open(t, t.TempDir(), u.source())); h.Problem != nil {
		t.Errorf("a new host: %v", h.Problem)
	}

	seen := func(text string) {
		rec, err := readRecord(p.repos[0].recordFile)
		must(t, err)
		rec.Seen, err = time.Parse(time.DateOnly, text)
		must(t, err)
		must(t, rec.write(p.repos[0].recordFile))
	}
	at("2023-06-10")
	next := u.add("dev", files{"a": "3"}, fine)
	u.set(next)
	seen("2024-02-01")
	expectRefusal(t, p, fine, "which is not valid on 2024-02-01, when this host last saw")
	seen("2023-12-01")
	if h := pull(t, p); h.Problem != nil || h.Commit != next {
		t.Errorf("the host last looked when the key was valid: %v", h.Problem)
	}
	if rec, err := readRecord(p.repos[0].recordFile); err != nil || time.Since(rec.Seen) > 2*seenEvery {
		t.Errorf("%v, %v", rec.Seen, err)
	}
}

// TestVerifyExpiredKeyOfTag: nor does it sign a new release.
func TestVerifyExpiredKeyOfTag(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice, bob := k.ssh("alice", "ed25519"), k.ssh("bob", "ed25519")
	lines := k.allow("alice", `valid-before="20240101Z"`) + k.allow("bob", "")
	src := Source{Name: "main", URL: u.dir, Tag: "v*", Verify: Verify{AllowedSigners: k.file("allowed", lines)}}
	p := open(t, t.TempDir(), src)
	u.at = time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC)
	old := u.commit("a", "1")
	u.git(append(alice, "tag", "-a", "-m", "v1.0", "v1.0")...)
	pull(t, p)
	first := u.commit("a", "2")
	u.git(append(bob, "tag", "-a", "-m", "v1.1", "v1.1")...)
	if h := pull(t, p); h.Problem != nil || h.Commit != first {
		t.Fatal(h.Problem)
	}
	u.git(append(alice, "tag", "-a", "-m", "v1.2", "v1.2", old)...)
	expectRefusal(t, p, first, `tag "v1.2" is signed by key`, "when this host last saw the repository without it")
	if got := content(t, p, Head{Repo: "main", Commit: old}, "a"); got != "1" {
		t.Error(got)
	}
}

// TestVerifyExpiredKeyOfTip: nor a new commit in the mode tip.
func TestVerifyExpiredKeyOfTip(t *testing.T) {
	u := newSignedUpstream(t, "dev")
	u.allow(u.line("dev", `valid-before="20240101Z"`))
	u.at = time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC)
	src := u.source()
	src.Verify.Mode = verifyTip
	p := open(t, t.TempDir(), src)
	older := u.add("dev", files{"a": "1"})
	old := u.add("dev", files{"a": "2"}, older)
	u.set(old)
	pull(t, p)
	u.set(u.add("dev", files{"a": "3"}, old))
	expectRefusal(t, p, old, "when this host last saw the repository without it")
	if got := content(t, p, Head{Repo: "main", Commit: older}, "a"); got != "1" {
		t.Error(got)
	}
}

// TestVerifyTipShallow: a host that looks at one commit needs no history for that.
func TestVerifyTipShallow(t *testing.T) {
	u := newSignedUpstream(t, "dev")
	src := u.source()
	src.Verify.Mode, src.URL = verifyTip, serveHTTP(t, u.upstream).url
	p := open(t, t.TempDir(), src)
	for parent, i := u.add("dev", files{"a": "1"}), 0; i < 3; i++ {
		parent = u.add("dev", files{"a": strings.Repeat("2", i)}, parent)
		u.set(parent)
		if h := pull(t, p); h.Problem != nil || h.Commit != parent {
			t.Errorf("%d: %v", i, h.Problem)
		}
	}
}
