package render

import (
	"cmp"
	"slices"
)

// Service is one node's instance of a service.
type Service struct {
	Name      string         `json:"name"`
	Node      string         `json:"node"`
	Address   string         `json:"address"`             // the one to use
	Addresses map[string]any `json:"addresses,omitempty"` // by interface
	Port      int            `json:"port,omitempty"`
	Tags      []string       `json:"tags,omitempty"`
	// the node was validated since it offers the service, and the service's own check succeeded
	Ready bool   `json:"ready"`
	Why   string `json:"why,omitempty"`  // it is not ready although the node was validated
	Lost  bool   `json:"lost,omitempty"` // its node does not answer, although at least half of the service's do
}

// data is the instance as templates and expressions see it.
func (s Service) data() map[string]any {
	tags := make([]any, len(s.Tags))
	for i, t := range s.Tags {
		tags[i] = t
	}
	return map[string]any{
		"name": s.Name, "node": s.Node, "address": s.Address, "addresses": s.Addresses, "port": s.Port, "tags": tags,
		"ready": s.Ready, "alive": !s.Lost,
	}
}

// services are the instances of a service, sorted by node.
func (v View) services(name string) []map[string]any {
	if v.Asked != nil {
		v.Asked(name)
	}
	list := slices.SortedFunc(
		slices.Values(v.Services[name]),
		func(a, b Service) int { return cmp.Compare(a.Node, b.Node) },
	)
	out := make([]map[string]any, len(list))
	for i, s := range list {
		out[i] = s.data()
	}
	return out
}

// Addresses are the node's addresses by interface, and the one to use: that of an interface, or of the default route
// for "".
func (c *Catalog) Addresses(of string) (use string, all map[string]any) { return c.scope.addresses(of) }

func (s *scope) addresses(of string) (use string, all map[string]any) {
	all, _ = s.server["addresses"].(map[string]any)
	if of == "" {
		use, _ = s.server["address"].(string)
		return use, all
	}
	if list, ok := all[of].([]any); ok && len(list) > 0 {
		use, _ = list[0].(string)
	}
	return use, all
}
