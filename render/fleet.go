package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/safetext"
)

// Fleet is pullet.yaml: what holds for all nodes.
type Fleet struct {
	Metadata *Metadata       `yaml:"metadata"` // names the file; it changes nothing
	Rollout  Rollout         `yaml:"rollout"`  // how a new version spreads
	Services ServiceSettings `yaml:"services"` // how services are shown to others than pullet
	Sinks    []Sink          `yaml:"sinks"`    // where events are sent to
	Config   Settings        `yaml:"config"`   // of the fleet itself
}

// ServiceSettings are how services are shown to others than pullet.
type ServiceSettings struct {
	// also write them as the etcd plugin of CoreDNS reads them: NAME.service.DOMAIN has the addresses of those that are
	// ready
	SkyDNS bool   `yaml:"skydns"`
	Domain string `yaml:"domain"` // of these names: example.org
}

// Zone is the domain under which services are in DNS; "" is nowhere.
func (s ServiceSettings) Zone() string {
	if !s.SkyDNS {
		return ""
	}
	return strings.ToLower(strings.Trim(s.Domain, "."))
}

// checkServices finds what is wrong with the settings of services.
func (c *compiler) checkServices(doc *document) {
	s := c.fleet.Services
	switch labels := strings.Split(strings.Trim(s.Domain, "."), "."); {
	case s.SkyDNS && s.Domain == "":
		c.fail(
			doc.errorAt(
				doc.find("services", "skydns"),
				"skydns needs the domain of the names: add domain: example.org",
			),
		)
	case s.Domain != "" && slices.ContainsFunc(labels, func(l string) bool { return !ValidServiceName(l) }):
		c.fail(doc.errorAt(doc.find("services", "domain"), "%q is no domain: write one such as example.org", s.Domain))
	}
}

// Inventory are the nodes that must exist, by name.
type Inventory map[string]Node

// inventoryFile is one file under nodes/.
type inventoryFile struct {
	Metadata *Metadata                `yaml:"metadata"`       // names the file; it changes nothing
	Nodes    map[string]inventoryNode `yaml:"nodes,required"` // by host name
}

// inventoryNode is a host that must exist.
type inventoryNode struct {
	// whatever the host's own configuration says; role is the group of its rollouts
	Labels map[string]string `yaml:"labels"`
}

// compileFleet reads the inventory and the rules. Neither is a template.
func (c *compiler) compileFleet() {
	c.compileInventory()
	c.compileRules()
	c.compileConfig()
}

// compileInventory reads the inventory of all layers.
func (c *compiler) compileInventory() {
	c.inventory = Inventory{}
	for _, path := range c.repo.list("nodes") {
		doc := c.files.plain(path)
		var body inventoryFile
		if doc == nil || !c.files.decode(doc, &body) {
			continue
		}
		for name, n := range body.Nodes {
			c.checkListed(doc, name, n.Labels)
			c.inventory[name] = Node{Name: name, Labels: n.Labels}
		}
	}
}

// checkListed refuses what the fleet's record could not hold.
func (c *compiler) checkListed(doc *document, name string, labels map[string]string) {
	if !safetext.Name(name) {
		c.fail(
			doc.errorAt(
				doc.find("nodes", name),
				"%q: name a node with letters, digits, dots, dashes and underscores",
				name,
			),
		)
	}
	if err := safetext.Labels(labels); err != nil {
		c.fail(doc.errorAt(doc.find("nodes", name), "node %s: %v", name, err))
	}
}

// unlisted puts in front of mistakes what may be the cause of them: the node is not in the inventory, and has other
// labels than its files expect.
func (c *compiler) unlisted(mistakes ErrorList) ErrorList {
	node := c.scope.in.Node
	if _, listed := c.inventory[node.Name]; listed || len(c.inventory) == 0 || len(mistakes) == 0 {
		return mistakes
	}
	e := &Error{
		Severity: Warning,
		Message: fmt.Sprintf(
			"node %q is not listed under nodes/, and has only the labels of its own configuration: %s",
			node.Name,
			LabelsText(node.Labels),
		),
	}
	e.Hint = cmp.Or(
		DidYouMean(node.Name, slices.Collect(maps.Keys(c.inventory))),
		"add it there, or set node.name and node.labels on the host",
	)
	return append(ErrorList{e}, mistakes...)
}

// LabelsText is labels for people, sorted.
func LabelsText(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// compileRules reads pullet.yaml, of the last layer that has one.
func (c *compiler) compileRules() {
	if !c.repo.exists(FleetFile) {
		return
	}
	doc := c.files.plain(FleetFile)
	if doc == nil || doc.root == nil {
		return
	}
	c.files.decode(doc, &c.fleet) // an invalid value does not hide a role that no node has
	c.checkRoles(doc)
	c.checkServices(doc)
	c.checkSinks(doc)
	c.checkDataStore(doc)
	if canary := c.fleet.Rollout.Canary; canary != nil {
		yes := canary.Target.Matches(c.scope.in.Node.Name, c.scope.in.Node.Labels)
		if listed, ok := c.inventory[c.scope.in.Node.Name]; ok {
			yes = canary.Target.Matches(listed.Name, listed.Labels)
		}
		c.targets = append(
			c.targets,
			TargetUse{doc.pos(doc.find("rollout", "canary", "target")), canary.Target.Text, yes, "nobody goes first"},
		)
	}
}

// find is the key at a path of keys below the root, or the nearest one above it.
func (d *document) find(path ...string) *yaml.Node {
	here, at := d.root, d.root
	for _, name := range path {
		for _, e := range entries(here) {
			if e.key.Value == name {
				at, here = e.key, e.value
			}
		}
	}
	return at
}

// cycle is a loop in what depends on what, from a name back to itself, or nil.
func cycle(deps map[string]Strings) []string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, next := range deps[name] {
			if loop := visit(next); loop != nil {
				return loop
			}
		}
		path, done[name] = path[:len(path)-1], true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(deps)) {
		if loop := visit(name); loop != nil {
			return loop
		}
	}
	return nil
}
