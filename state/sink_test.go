package state

import (
	"strings"
	"testing"
	"time"
)

// TestSinkRecords: how far sinks are is written by the reactor alone. A record that cannot be is not written, and one
// that somebody else wrote so is left out.
func TestSinkRecords(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	since, lease := leads(t, s, "web1")
	good := Sink{Type: "slack", To: "hooks.example.org", Page: 3, Index: 2, Sent: 7, By: "web1", At: time.Now().UTC(), Error: "a\nb"}
	still, err := s.Sinks.Keep(ctx, since, "chat", good)
	if must(t, err); !still {
		t.Error("the reactor could not write")
	}
	all, err := s.Sinks.All(ctx)
	if must(t, err); len(all) != 1 || all["chat"].Sent != 7 || all["chat"].Error != "a b" {
		t.Errorf("%+v", all)
	}
	for what, change := range map[string]func(*Sink){
		"page: -1 is not":      func(s *Sink) { s.Page = -1 },
		"index: 1001 is not":   func(s *Sink) { s.Index = MaxPage + 1 },
		"events: -1 ":          func(s *Sink) { s.Failures = -1 },
		"events: -1":           func(s *Sink) { s.Dropped = -1 },
		"is absurd":            func(s *Sink) { s.Since = time.Unix(1e11, 0) },
		"is no name of a node": func(s *Sink) { s.By = "a b" },
	} {
		bad := good
		change(&bad)
		if _, err := s.Sinks.Keep(ctx, since, "chat", bad); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
	_, err = s.Client.Revoke(ctx, lease)
	must(t, err)
	next, _ := leads(t, s, "web2")
	still, err = s.Sinks.Keep(ctx, since, "chat", Sink{By: "web1"})
	if must(t, err); still {
		t.Error("who is not the reactor any more wrote")
	}
	still, err = s.Sinks.Forget(ctx, since, "chat")
	if must(t, err); still {
		t.Error("who is not the reactor any more removed")
	}
	still, err = s.Sinks.Forget(ctx, next, "chat")
	if must(t, err); !still {
		t.Error("the reactor could not remove")
	}
	etcd, err := raw(s)
	must(t, err)
	defer etcd.Close()
	_, err = etcd.Put(ctx, s.prefix+"sink/chat", `{"page":"first"}`)
	must(t, err)
	if all, err := s.Sinks.All(ctx); err != nil || len(all) != 0 || len(s.BadRecords()) != 1 {
		t.Errorf("%+v %v", all, err)
	}
}
