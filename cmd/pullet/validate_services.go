package main

import (
	"fmt"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/render/lint"
)

// sampleServices are what base/services.yaml has the nodes offer, as if all of them worked: a template that needs an
// address compiles.
func sampleServices(repo *render.Repository, nodes []render.Node) map[string][]render.Service {
	out := map[string][]render.Service{}
	if !repo.HasServices() {
		return out
	}
	for _, n := range nodes {
		offers, _, err := repo.Offers(render.Input{Node: n, Facts: facts.Sample(n.Name)})
		if err != nil { // told when the node's catalog is compiled
			continue
		}
		for _, o := range offers {
			one := o.Instance()
			one.Ready = true
			out[o.Name] = append(out[o.Name], one)
		}
	}
	return out
}

// publishes adds what the jobs of a node publish, of services that the view does not have.
func publishes(cat *render.Catalog, view render.View, more map[string][]render.Service) {
	if cat == nil {
		return
	}
	for _, one := range lint.Publishes(cat) {
		if _, known := view.Services[one.Name]; !known {
			one.Ready = true
			more[one.Name] = append(more[one.Name], one)
		}
	}
}

// lacking says of a template that failed for want of a service what that means here, where only the repository is
// known.
func lacking(m *render.Error, view render.View) {
	if m.Severity != render.Mistake || m.Hint != "" {
		return
	}
	for _, name := range m.Services {
		if name != "" && len(view.Services[name]) == 0 {
			m.Hint = fmt.Sprintf(
				"no host of nodes/ offers the service %q: offer it in base/services.yaml, or with service.publish in a job; "+
					"a host with a role that stands only in its own configuration is not known here",
				name,
			)
		}
	}
}
