package main

import (
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

// sampleServices are what base/services.yaml has the nodes offer, as if all of them worked: a template that needs an address compiles.
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
