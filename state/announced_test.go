package state

import (
	"strings"
	"testing"
	"time"
)

// TestAnnounced: what was announced last of each repository that is asked for, and an agent that waits is woken by it.
// A record that cannot be read is left out, and none that could not be read is written.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	woken := make(chan error, 1)
	go func() { woken <- s.Bells.AwaitWork(ctx, "web1", "", 0) }()
	commit := strings.Repeat("ab", 20)
	must(t, s.Bells.Announce(ctx, "main", Announced{Ref: "refs/heads/main", Commit: strings.Repeat("0", 40), At: time.Now()}))
	must(t, <-woken)
	must(t, s.Bells.Announce(ctx, "main", Announced{Ref: "refs/heads/main", Commit: commit, At: time.Now()}))
	must(t, s.Bells.Announce(ctx, "other", Announced{Ref: "refs/tags/v1", Commit: commit + strings.Repeat("0", 24), At: time.Now()}))
	all, err := s.Bells.Announced(ctx, []string{"main", "nothing"})
	if must(t, err); len(all) != 1 || all["main"].Commit != commit || all["main"].Rev == 0 {
		t.Errorf("%+v", all)
	}
	for what, bad := range map[string]Announced{
		"is no id of a commit":            {Ref: "refs/heads/main", Commit: "main"},
		"is no name of a branch or a tag": {Ref: "refs/heads/a\n", Commit: commit},
		"is absurd":                       {Ref: "refs/heads/a", Commit: commit, At: time.Unix(1e11, 0)},
	} {
		if err := s.Bells.Announce(ctx, "main", bad); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
	etcd, err := raw(s)
	must(t, err)
	defer etcd.Close()
	_, err = etcd.Put(ctx, s.prefix+"announced/main", `{"ref":"refs/heads/main","commit":"x"}`)
	must(t, err)
	if all, err := s.Bells.Announced(ctx, []string{"main", "other"}); err != nil || len(all) != 1 || len(s.BadRecords()) != 1 {
		t.Errorf("%+v %v", all, err)
	}
}
