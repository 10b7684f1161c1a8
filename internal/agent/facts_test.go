package agent

import "testing"

// TestFactsOfAPull: a pull knows one set of facts, whatever happens on the host meanwhile: what it registers is what it
// compiles with. The next pull sees what changed.
func TestFactsOfAPull(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	h.write("root/etc/os-release", "ID=debian\n")
	first := a.pull(t.Context(), Options{})
	for _, id := range []string{"debian", "fedora"} {
		h.write("root/etc/os-release", "ID="+id+"\n")
		if os := first.compiler.facts()["os"]; os != "debian" {
			t.Errorf("the host says %s, and the pull %v", id, os)
		}
	}
	if os := a.pull(t.Context(), Options{}).compiler.facts()["os"]; os != "fedora" {
		t.Errorf("the next pull says %v", os)
	}
}
