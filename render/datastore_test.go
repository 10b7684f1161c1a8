package render

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// datastoreOf compiles pullet.yaml, base/config.yaml and hosts for the node a1.
func datastoreOf(t *testing.T, fleet, config, hosts string) (*Catalog, error) {
	t.Helper()
	files := fstest.MapFS{
		"nodes/hosts.yaml": {Data: []byte("nodes: " + hosts)}, "base/jobs.yaml": {Data: []byte("jobs: {}")},
	}
	if fleet != "" {
		files[FleetFile] = &fstest.MapFile{Data: []byte(fleet)}
	}
	if config != "" {
		files[ConfigFile] = &fstest.MapFile{Data: []byte(config)}
	}
	return Open(Layer{Name: "main", FS: files}).Compile(Input{Node: Node{Name: "a1"}})
}

// TestDataStore: which hosts may carry the datastore, and what cannot be.
func TestDataStore(t *testing.T) {
	const four = "{a1: {labels: {rack: x}}, a2: {labels: {rack: y, role: db}}, b1: {labels: {rack: z, datastore: 'yes'}}, b2: {}}"
	const all = "{a1: {}, a2: {}, a3: {}}"
	for _, c := range []struct {
		fleet, config, hosts string
		may                  string // or a mistake
	}{
		{"config: {dataStore: {type: etcd, count: 3}}", "", all, "a1 a2 a3"},
		{"", "config: {dataStore: {type: etcd, count: 3}}", all, "a1 a2 a3"},
		{"config: {dataStore: {count: 1}}", "", four, "b1"},
		{"config: {dataStore: {count: 1, eligible: 'a*'}}", "", four, "a1 a2"},
		{"config: {dataStore: {count: 1, eligible: [role=db, b2]}}", "", four, "a2 b2"},
		{"config: {dataStore: {count: 2}}", "", all, "pullet.yaml:1:22: count: 2: write 1, 3 or 5: an even number bears no more faults than the odd one below it, and more than 5 are slow"},
		{"config: {dataStore: {count: 7}}", "", all, "pullet.yaml:1:22: count: 7: write 1, 3 or 5"},
		{"config: {dataStore: {type: etcd}}", "", all, "pullet.yaml:1:10: count is missing: 1, 3 or 5 hosts carry the datastore"},
		{"config: {dataStore: {type: redis, count: 3}}", "", all, `pullet.yaml:1:28: type: expected etcd, found "redis"`},
		{"config: {dataStore: {count: 3, replaceAfter: 5s}}", "", all, "replaceAfter: 5s is shorter than a restart: write 10s or more"},
		{"config: {dataStore: {count: 3, eligible: role=none}}", "", all, "no host of nodes/ may carry the datastore: role=none"},
		{"config: {dataStore: {count: 3}}", "config: {dataStore: {count: 3}}", all, "base/config.yaml:1:10: pullet.yaml has a dataStore, too: keep one of them"},
		{"config: {dataStore: {counts: 3}}", "", all, `unknown field "counts" (did you mean "count"?)`},
	} {
		cat, err := datastoreOf(t, c.fleet, c.config, c.hosts)
		if err != nil {
			if !strings.Contains(err.Error(), c.may) {
				t.Errorf("%s%s: %v\nwant %s", c.fleet, c.config, err, c.may)
			}
			continue
		}
		d := cat.Fleet.Config.DataStore
		if may := strings.Join(d.May(cat.Inventory), " "); may != c.may || !d.Wanted() {
			t.Errorf("%s%s: %s\nwant %s", c.fleet, c.config, may, c.may)
		}
	}
}

// TestDataStoreLacksHosts: fewer hosts than are wanted are a warning: others may join.
func TestDataStoreLacksHosts(t *testing.T) {
	cat, err := datastoreOf(t, "config: {dataStore: {count: 3, eligible: 'a*'}}", "", "{a1: {}, b1: {}}")
	if err != nil {
		t.Fatal(err)
	}
	said := func(e *Error) bool {
		return e.Severity == Warning && strings.Contains(e.Error(), "count: 3 hosts are to carry the datastore, and 1 of nodes/ may")
	}
	if !slices.ContainsFunc(cat.Warnings(), said) {
		t.Errorf("%v", cat.Warnings())
	}
	cat, err = datastoreOf(t, "rollout: {}", "", "{a1: {}}")
	if err != nil || cat.Fleet.Config.DataStore.Wanted() || len(cat.Warnings()) > 0 {
		t.Errorf("a fleet that says nothing: %v, %v", err, cat.Warnings())
	}
}
