package action_test

import (
	"os"
	"testing"
	"time"

	"github.com/pullet/pullet/apply/action/actiontest"
	"golang.org/x/sys/unix"
)

// site is a job that writes a file and is put back when that turns out to be bad.
func site(content string, more ...string) string {
	return text(restores, append([]string{conf("conf", "/etc/site.conf", content)}, more...)...)
}

// TestRestore: after an upgrade that failed the files are what they were when one succeeded last, whatever happened in
// between, and what cannot be put back is named.
func TestRestore(t *testing.T) {
	t.Parallel()
	good := text("", sh("c", "grep -q good etc/site.conf"))
	failed := text("", sh("c", "false"))
	reload := reacts("reload", "cat etc/site.conf >>log", "watch: [conf]")
	was := map[string]string{"etc/site.conf": "good"}
	put := "a/conf changed, check/c failed, a/restore /etc/site.conf changed"
	for _, c := range []history{
		{name: "cut off while it was put back",
			pulls: []pull{
				{job: site("good", reload), check: good}, {job: site("BAD", reload), check: good, cut: "restore /etc/site.conf"},
				{job: site("BAD", reload), check: good, again: true}},
			told: "a/conf changed, a/reload changed, check/c failed, a/restore /etc/site.conf changed, a/reload (restore) changed", want: was},
		{name: "cut off before the validation, and while it was put back",
			pulls: []pull{
				{job: site("good", reload), check: good}, {job: site("BAD", reload), check: good, cut: "reload"},
				{job: site("BAD", reload), check: good, cut: "restore /etc/site.conf", again: true}, {job: site("BAD", reload), check: good, again: true}},
			told: "a/conf changed, a/reload changed, check/c failed, a/restore /etc/site.conf changed, a/reload (restore) changed", want: was},
		{name: "by a step of another name",
			pulls: []pull{
				{job: site("good"), check: good}, {job: site("BAD"), check: good},
				{job: text(restores, conf("settings", "/etc/site.conf", "WORSE")), check: good}},
			told: "a/settings changed, check/c failed, a/restore /etc/site.conf changed", want: was},
		{name: "what hangs", pulls: []pull{
			{job: site("good"), check: good},
			{job: site("BAD"), check: text("", sh("c", "grep -q good etc/site.conf || exec sleep 60")), limit: 300 * time.Millisecond}},
			told: put, want: was},
		{name: "a record of which a line was cut off", pulls: []pull{
			{job: site("good", sh("bad", "true"))},
			{job: site("BAD", sh("bad", "false")), cut: "conf", sh: `mkdir "$STATE"/lastgood; printf '{"step":"a/co' >"$STATE"/lastgood/index.jsonl`},
			{job: site("BAD", sh("bad", "false")), again: true}},
			told: "a/conf changed, a/bad failed, a/restore /etc/site.conf changed", want: was},
		{name: "what was changed by hand is no last good", pulls: []pull{
			{job: site("good"), check: text("", sh("c", "test ! -e down"))},
			{job: site("good"), check: text("", sh("c", "test ! -e down")), sh: "echo drift >etc/site.conf; touch down", again: true}},
			told: "a/conf changed, check/c failed, not undone a/conf", want: was},
		{name: "what was removed is named", host: []string{"f /etc/conf.d/hand.conf 0644 by hand"}, pulls: []pull{
			{job: text(restores, "{name: d, action: file.directory, parameters: {name: /etc/conf.d, clean: true}}"), check: failed}},
			told: "a/d changed, check/c failed, not undone a/d", want: map[string]string{"etc/conf.d/hand.conf": gone}},
		{name: "a part of a file in which another job has one", host: []string{"f /etc/hosts 0644 127.0.0.1 localhost\n"}, pulls: []pull{
			{job: text(restores, "{name: h, action: host.present, parameters: {ip: 192.0.2.1, names: [db]}}", sh("bad", "false")),
				other: text("", "{name: h, action: host.present, parameters: {ip: 192.0.2.2, names: [web]}}")}},
			told: "a/h changed, a/bad failed, b/h changed, a/restore host db at 192.0.2.1 changed", want: map[string]string{"etc/hosts": "127.0.0.1 localhost\n192.0.2.2\tweb\n"}},
		{name: "a directory that others filled stays and is named", host: []string{"d /etc 0755"}, pulls: []pull{
			{job: text(restores, "{name: d, action: file.directory, parameters: {name: /etc/app}}", sh("c", "touch etc/app/x; false"))}},
			told: "a/d changed, a/c failed, not undone a/d", want: map[string]string{"etc/app/x": ""}},
		{name: "such a directory is pruned when it is empty", host: []string{"d /etc 0755"}, pulls: []pull{
			{job: text(prunes+restores, "{name: d, action: file.directory, parameters: {name: /etc/app}}", sh("c", "touch etc/app/x; false"))},
			{job: text(prunes), sh: "rm etc/app/x"}},
			told: "a/prune file /etc/app changed", want: map[string]string{"etc/app": gone}},
	} {
		c.check(t)
	}
}

// TestRestoreReactions: what reads a file that was put back reacts to that, also when the run that put it back did not
// come to it.
func TestRestoreReactions(t *testing.T) {
	t.Parallel()
	check := text("", sh("c", "grep -q good etc/site.conf"))
	reload := reacts("reload", "cat etc/site.conf >>log", "watch: [conf]")
	history{name: "another version came",
		pulls: []pull{
			{job: site("good ", reload), check: check}, {job: site("BAD ", reload), check: check, cut: "restore /etc/site.conf"},
			{job: site("good ", reload), check: check}},
		told: "a/conf ok, a/reload changed, check/c ok", want: map[string]string{"log": "good BAD good "}}.check(t)
}

// TestRestoreAttributes: extended attributes of a file come back with it.
func TestRestoreAttributes(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	follow(s, "v1", pull{job: site("good")}, false)
	if err := unix.Setxattr(s.Path("etc/site.conf"), "user.x", []byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	// What replaces a file keeps them: only a file that is made anew shows whose they are.
	r := follow(s, "v2", pull{job: site("BAD", sh("anew", "rm etc/site.conf; false"))}, false)
	if want := "a/conf changed, a/anew failed, a/restore /etc/site.conf changed"; told(r) != want {
		t.Errorf("told %s, want %s", told(r), want)
	}
	buf := make([]byte, 10)
	n, err := unix.Getxattr(s.Path("etc/site.conf"), "user.x", buf)
	if err != nil || string(buf[:n]) != "y" || s.Read("etc/site.conf") != "good" {
		t.Errorf("user.x %q, %v; content %q", buf[:max(n, 0)], err, s.Read("etc/site.conf"))
	}
}

// TestRestoreFollowsNoLink: where a link took a directory's place, what it leads to keeps its mode, and the host's
// owner is told.
func TestRestoreFollowsNoLink(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "d /home/bob/app 0777", "d /etc/secret 0700")
	r := follow(s, "v1", pull{job: text(restores, "{name: d, action: file.directory, parameters: {name: /home/bob/app, mode: 0755}}",
		sh("bob", "rmdir home/bob/app; ln -s ../../etc/secret home/bob/app; false"))}, false)
	if want := "a/d changed, a/bob failed, a/restore /home/bob/app failed"; told(r) != want {
		t.Errorf("told %s, want %s", told(r), want)
	}
	if info, err := os.Stat(s.Path("etc/secret")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestRestoreOnlyWhatChanged: a file that the step failed to make is not put back, and one of which only the owner
// changed is.
func TestRestoreOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	failed := text("", sh("c", "false"))
	history{name: "the step failed before there was a file",
		pulls: []pull{{job: text(restores, "{name: conf, action: file.managed, parameters: {name: /site.conf, content: x, validate: 'false %s'}}")}},
		told:  "a/conf failed", want: map[string]string{"site.conf": gone}}.check(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: it changes owners")
	}
	s := actiontest.New(t, "f /site.conf 0644 x")
	r := follow(s, "v1", pull{job: text(restores, "{name: conf, action: file.managed, parameters: {name: /site.conf, owner: '4321'}}"), check: failed}, false)
	if got, want := told(r), "a/conf changed, check/c failed, a/restore /site.conf changed"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	var st unix.Stat_t
	if err := unix.Stat(s.Path("site.conf"), &st); err != nil || st.Uid != uint32(os.Getuid()) {
		t.Errorf("its owner is %d %v, want %d", st.Uid, err, os.Getuid())
	}
}

// TestTooLargeToRestore: a file that cannot be kept is not changed.
func TestTooLargeToRestore(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f /big 0644 x")
	if err := os.Truncate(s.Path("big"), 1<<30+1); err != nil { // it has no blocks
		t.Fatal(err)
	}
	r := follow(s, "v1", pull{job: text(restores, conf("conf", "/big", "new"))}, false)
	want := "keeping /big, to restore it if the upgrade fails: it has 1073741825 bytes, more than the 1073741824 that are kept"
	if r.Steps[0].Outcome != "failed" || r.Steps[0].Reason != want {
		t.Errorf("%s %q, want %q", r.Steps[0].Outcome, r.Steps[0].Reason, want)
	}
	if info, err := os.Stat(s.Path("big")); err != nil || info.Size() != 1<<30+1 {
		t.Errorf("the file changed: %v", err)
	}
}
