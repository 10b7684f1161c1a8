package render

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// ConfigFile may hold the settings of the fleet instead of pullet.yaml.
const ConfigFile = "base/config.yaml"

// configFile is base/config.yaml.
type configFile struct {
	Metadata *Metadata     `yaml:"metadata"` // names the file; it changes nothing
	Config   Settings      `yaml:"config"`   // of the fleet
	Events   eventSettings `yaml:"events"`   // who evaluates which triggers, as in base/events.yaml
}

// Settings are those of the fleet itself.
type Settings struct {
	DataStore DataStore `yaml:"dataStore"` // which hosts carry the fleet's datastore, where it has one of its own
}

// DataStore says which hosts carry the fleet's datastore. Nothing: those that carry it go on.
type DataStore struct {
	Type  string `yaml:"type" words:"etcd"` // what it is
	Count int    `yaml:"count"`             // how many hosts carry it: 1, 3 or 5
	// which hosts may; default: those with a label datastore, or all of nodes/ where none has it
	Eligible Selector `yaml:"eligible"`
	// the label whose values are failure domains, such as rack: members are spread over them
	Spread string `yaml:"spread"`
	// a member that no other one reaches for so long is replaced; 10s at least; default 10m
	ReplaceAfter Duration `yaml:"replaceAfter"`
}

const (
	datastoreLabel = "datastore"
	replaceAfter   = Duration(10 * time.Minute)
	// minReplaceAfter is longer than a restart: a new member takes up to 7 s until it tells its name.
	minReplaceAfter = Duration(10 * time.Second)
)

// Wanted reports that the repository says how many hosts carry the datastore.
func (d DataStore) Wanted() bool { return d.Count > 0 }

// Patience is how long a member may be away.
func (d DataStore) Patience() time.Duration { return cmp.Or(d.ReplaceAfter, replaceAfter).Std() }

// May are the hosts of the inventory that may carry the datastore, by name.
func (d DataStore) May(hosts Inventory) []string {
	may := func(n Node) bool { return d.Eligible.Matches(n.Name, n.Labels) }
	if d.Eligible.Text == "" {
		may = func(n Node) bool { return n.Labels[datastoreLabel] != "" }
		if !slices.ContainsFunc(slices.Collect(maps.Values(hosts)), may) {
			may = func(Node) bool { return true }
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if may(hosts[name]) {
			out = append(out, name)
		}
	}
	return out
}

// compileConfig reads base/config.yaml, of the last layer that has one.
func (c *compiler) compileConfig() {
	if !c.repo.exists(ConfigFile) {
		return
	}
	doc := c.files.plain(ConfigFile)
	var body configFile
	if doc == nil || doc.root == nil || !c.files.decode(doc, &body) {
		return
	}
	c.triggers.config = []triggersIn{{doc, body.Events}}
	if reflect.ValueOf(body.Config).IsZero() {
		return
	}
	at := doc.find("config", "dataStore")
	if c.fleet.Config.DataStore.Wanted() {
		c.fail(doc.errorAt(at, "%s has a dataStore, too: keep one of them", FleetFile))
		return
	}
	c.fleet.Config = body.Config
	c.checkDataStore(doc)
}

// checkDataStore finds what is wrong with the wishes for the datastore.
func (c *compiler) checkDataStore(doc *document) {
	d, at := c.fleet.Config.DataStore, func(key string) *yaml.Node { return doc.find("config", "dataStore", key) }
	if reflect.ValueOf(d).IsZero() {
		return
	}
	may := d.May(c.inventory)
	switch {
	case d.Count == 0:
		c.fail(doc.errorAt(at("count"), "count is missing: 1, 3 or 5 hosts carry the datastore"))
	case !slices.Contains([]int{1, 3, 5}, d.Count):
		c.fail(doc.errorAt(at("count"), "count: %d: write 1, 3 or 5: an even number bears no more faults than the odd one "+
			"below it, and more than 5 are slow", d.Count))
	case d.ReplaceAfter != 0 && d.ReplaceAfter < minReplaceAfter:
		c.fail(doc.errorAt(at("replaceAfter"), "replaceAfter: %s is shorter than a restart: write %s or more",
			d.ReplaceAfter.Std(), minReplaceAfter.Std()))
	case len(may) == 0 && d.Eligible.Text != "":
		c.fail(doc.errorAt(at("eligible"), "no host of nodes/ may carry the datastore: %s", d.Eligible.Text))
	case len(may) < d.Count:
		e := doc.errorAt(at("count"), "count: %d hosts are to carry the datastore, and %s may", d.Count, hostsOf(len(may)))
		e.Severity, e.Hint = Warning, "add hosts below nodes/, or change eligible"
		c.warned = append(c.warned, e)
	}
}

func hostsOf(n int) string {
	if n == 0 {
		return "none of nodes/"
	}
	return fmt.Sprintf("%d of nodes/", n)
}
