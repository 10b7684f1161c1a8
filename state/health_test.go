package state

import "testing"

// TestHealth: an endpoint that answers says its version and its size; one that does not says why.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	s.endpoints = append(s.endpoints, "http://127.0.0.1:1")
	members, full, err := s.Health(ctx)
	if err != nil || full || len(members) < 2 {
		t.Fatalf("%+v, full %v, %v", members, full, err)
	}
	last := len(members) - 1
	for _, m := range members[:last] {
		if m.Err != nil || m.Version == "" || m.Size == 0 {
			t.Errorf("%+v", m)
		}
	}
	if m := members[last]; m.Err == nil || m.Version != "" || m.Took == 0 {
		t.Errorf("%+v", m)
	}
}
