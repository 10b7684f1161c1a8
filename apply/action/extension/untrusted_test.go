package extension_test

import (
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/apply/hostfile"
)

// TestUntrustedIsNotStarted: a plan of a work tree does not start an extension, and does not store it on the host.
func TestUntrustedIsNotStarted(t *testing.T) {
	s := actiontest.New(t)
	mark := filepath.Join(s.State, "ran")
	script := "#!/bin/sh\ntouch " + mark + "\necho '{\"change\": \"more\"}'\n"
	p := mustBindLayers(s, job(brings(script, "check: true\n"), "acme.it", "{}"))
	o := s.Options()
	o.Host.Untrusted = true
	r := p.Plan(t.Context(), o).Steps[0]
	if r.Outcome != apply.Changed || !r.Unknown || r.Unevaluated != "the extension" || r.Summary != "unknown because the extension was not run" {
		t.Errorf("%+v", r)
	}
	if hostfile.Exists(mark) {
		t.Error("it was started")
	}
	if r := p.Plan(t.Context(), s.Options()).Steps[0]; r.Summary != "more" || !hostfile.Exists(mark) {
		t.Errorf("trusted: %+v", r)
	}
}
