package state

import (
	"fmt"
	"testing"
)

// TestWhose: whose a key is, also where pullet cannot read it.
func TestWhose(t *testing.T) {
	s := Over(nil, "f", nil)
	for key, want := range map[string]string{
		"/pullet/f/facts/web1":                  "facts web1",
		"/pullet/f/service/web1/http":           "service web1",
		"/pullet/f/service/web1/http/and/below": "service web1",
		"/pullet/f/status/rollout/failed/web1":  "status web1",
		"/pullet/f/status/rollout":              "status ",
		"/pullet/f/request/web1":                "request web1",
		"/pullet/f/blob/web1/001":               "blob ",
		"/pullet/f/run/v1/h/result/web1":        "run ",
		"/pullet/f/identity/web1":               "identity ",
		"/pullet/f/config_state/pause":          "config_state ",
		"/pullet/f/facts/\x1b[31m":              "other keys ",
		"/pullet/f/nothing/web1":                "other keys ",
		"/pullet/g/facts/web1":                  "other keys ",
		"/skydns/local/x":                       "skydns ",
	} {
		if family, name := s.Whose(key); family+" "+name != want {
			t.Errorf("%s: %s of %q", key, family, name)
		}
	}
}

// TestRetireLater: what belongs to a version that a node ran for long goes when it left it, without another version.
func TestRetireLater(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	place := s.Steps.Key("a", "election", "place", "0")
	must(t, put(s, s.Statuses.RunningKey("a", "web1"), place))
	propose(t, s, "a")
	for i := range 2 * keptVersions {
		propose(t, s, fmt.Sprint("v", i))
	}
	must(t, s.Versions.Retire(ctx))
	if count(t, s, place) == 0 {
		t.Error("it is removed although web1 runs the version")
	}
	_, err := s.Client.Delete(ctx, s.Statuses.RunningKey("a", "web1"))
	must(t, err)
	must(t, s.Versions.Retire(ctx))
	if n := count(t, s, place); n != 0 {
		t.Errorf("%d are left", n)
	}
}
