package render

import (
	"context"
	"maps"
	"slices"
)

// Node is a host as its own configuration or the inventory describes it.
type Node struct {
	Name string `json:"name" yaml:"name"` // what the fleet knows it by; default: the host name
	// for targets; those under nodes/ of the repository win
	Labels map[string]string `json:"labels,omitempty" yaml:"labels"`
}

// Role is the label "role": the group in which the node takes its turn in a rollout. It may be empty.
func (n Node) Role() string { return n.Labels["role"] }

// Facts are what is true of a host: flat names with values as in JSON. Package facts gathers them.
type Facts map[string]any

// View is what a catalog may know of the fleet, read at one revision of its store. The zero View is a fleet of one.
type View struct {
	Revision int64                `json:"-"`
	Nodes    map[string]Node      `json:"nodes"`              // every registered node
	Facts    map[string]Facts     `json:"facts"`              // what each node published
	Services map[string][]Service `json:"services,omitempty"` // by name
	Asked    func(service string) `json:"-"`                  // is told which services are asked for; may be nil
	// is told that nodes or their facts are asked for; may be nil
	AskedAll func() `json:"-"`
}

// over is the view with the inventory laid over it: its labels hold for every node that it lists, whatever that node
// registered with.
func (v View) over(i Inventory) View {
	if len(i) == 0 || len(v.Nodes) == 0 {
		return v
	}
	nodes := maps.Clone(v.Nodes)
	for name := range nodes {
		if listed, ok := i[name]; ok {
			nodes[name] = listed
		}
	}
	v.Nodes = nodes
	return v
}

// Servers are the names of the registered nodes that a target matches, sorted.
func (v View) Servers(target string) ([]string, error) {
	t, err := ParseTarget(target)
	if err != nil {
		return nil, err
	}
	v.askAll()
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(v.Nodes)) {
		if t.Matches(name, v.Nodes[name].Labels) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (v View) askAll() {
	if v.AskedAll != nil {
		v.AskedAll()
	}
}

// Input is everything that a catalog depends on beside the repository.
type Input struct {
	Context context.Context // ends the work early, with its cause as the error; nil: never
	Node    Node
	Facts   Facts
	View    View
	// Event is what a reaction answers; nil outside of one. Its keys: name and node (texts), occurrences (a number), data
	// (a map as JSON has it), time (RFC 3339) and id (texts), hosts (a list of names), cause (a list of maps with run and
	// reaction).
	Event map[string]any
	// Reaction is the run of a reaction for which the catalog is: it has the jobs of that, and no services. Nil: what the
	// base files say.
	Reaction *Reacting
	HostVars map[string]any // the node's own variables: they override those of git
	Secrets  Secrets        // those of them that are sensitive
	// Unseal decrypts a file of the repository; ErrNotForNode where the node is not meant to read it. Nil: there are no
	// keys here, and what stands in encrypted files is not known.
	Unseal func(sealed []byte) ([]byte, error)
	// CheckSealed finds without a key that a file of the repository cannot be opened by a host with these public keys.
	// Nil: that is not asked.
	CheckSealed func(sealed []byte, keys []string) error
	Version     string // the version that the repository is at
	Release     string
	Agent       string // the version of pullet
}

// server is the root of the same name: facts and identity, flat and as the source documents spell them.
func (in Input) server() map[string]any {
	labels := map[string]any{}
	for k, v := range in.Node.Labels {
		labels[k] = v
	}
	out := map[string]any{}
	maps.Copy(out, in.Facts)
	out["name"], out["labels"] = in.Node.Name, labels
	if _, ok := out["fqdn"]; !ok {
		out["fqdn"] = in.Node.Name
	}
	out["ObjectMetadata"] = map[string]any{"Name": in.Node.Name, "Labels": labels}
	out["Spec"] = map[string]any{"FQDN": out["fqdn"]}
	return out
}
