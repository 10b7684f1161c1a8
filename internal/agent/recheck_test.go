package agent

import (
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

const offering = `services:
  '*':
    - {name: polled, port: 80, address: 192.0.2.1, check: {tcp: 80, interval: 1m}}
    - {name: at-pulls, port: 80, address: 192.0.2.1, check: {tcp: 80}}
    - {name: unchecked, port: 80, address: 192.0.2.1}
    - {name: nowhere, port: 80, interface: none0, check: {tcp: 80, interval: 1m}}
`

// TestRechecks: between pulls the checks are asked that have an interval and an address, of the version that runs and
// was validated.
func TestRechecks(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"base/jobs.yaml": {Data: []byte("jobs: {}\n")}, "base/services.yaml": {Data: []byte(offering)}}
	cat, err := render.Open(render.Layer{Name: "main", FS: files}).Compile(render.Input{Node: render.Node{Name: "n1"}})
	if err != nil || len(cat.Offers()) != 4 {
		t.Fatalf("%v: %v", cat.Offers(), err)
	}
	one, two := &state.Version{ID: "v1"}, &state.Version{ID: "v2"}
	p := &announcer{self: &self{}, host: (&Agent{self: &self{}}).host, local: &local{Local: state.Local{Running: one}}, compiler: &compiler{offers: map[string]offered{}}}
	for _, v := range []*state.Version{one, two} {
		p.compiler.offers[v.ID] = offered{list: cat.Offers()}
	}
	if got := p.rechecks(one, true); len(got) != 1 || got[0].offer.Name != "polled" {
		t.Errorf("%+v", got)
	}
	if got := append(p.rechecks(one, false), p.rechecks(two, true)...); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
