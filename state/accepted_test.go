package state

import (
	"errors"
	"testing"
	"time"
)

// TestOlderAcceptance: an acceptance that a restore brought back does not stand for the record as it is now; the next
// one does, also by a clock that is behind.
func TestOlderAcceptance(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register(t, s, "n1", "web", "a", time.Minute)
	first, err := s.Doubts.Guard(ctx, "n1", Origin{})
	must(t, err, s.Doubts.Accept(ctx, "ada"))
	accepted, err := s.Doubts.Guard(ctx, "n1", Origin{})
	must(t, err)
	older := accepted.Accepted
	for name, seen := range map[string]string{"a later one": "", "one by a clock that is ahead": "ada " + time.Now().UTC().AddDate(1, 0, 0).Format(time.RFC3339Nano)} {
		if seen == "" {
			must(t, s.Doubts.Accept(ctx, "ada"))
			is, err := s.Doubts.Guard(ctx, "n1", accepted)
			must(t, err)
			seen = is.Accepted
		}
		_, err := s.Client.Put(ctx, s.Doubts.acceptedKey(), older)
		must(t, err)
		saw := Origin{Cluster: first.Cluster, Revision: first.Revision + 1000, Accepted: seen}
		var back *WentBackError
		if _, err := s.Doubts.Guard(ctx, "n1", saw); !errors.As(err, &back) || count(t, s, s.Doubts.Key()) != 1 {
			t.Errorf("it saw %s: the older acceptance counts: %v", name, err)
		}
		must(t, s.Doubts.Accept(ctx, "ada"))
		if _, err := s.Doubts.Guard(ctx, "n1", saw); err != nil || count(t, s, s.Doubts.Key()) != 0 {
			t.Errorf("it saw %s: the record is accepted, and %v", name, err)
		}
	}
}
