package render

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

var offeringHost = Input{Node: Node{Name: "db1", Labels: map[string]string{"role": "db"}}, Facts: Facts{
	"os": "debian", "address": "192.0.2.1",
	"addresses": map[string]any{"eth0": []any{"192.0.2.1"}, "eth1": []any{"198.51.100.1", "198.51.100.2"}},
}}

// TestOffers: the file is read although the jobs are broken, later targets override earlier ones, and the address is
// that of the interface.
func TestOffers(t *testing.T) {
	r := repo(map[string]string{
		"base/services.yaml": `services:
  '*': [{name: node, port: 9100}, {name: db, port: 1}]
  role=db: [{name: db, port: 5432, interface: eth1, tags: [primary, "{{ server.os }}"], check: {cmd: pg_isready, interval: 10s}}]
  role=web: [{name: web}]
`,
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}", "jobs/a.yaml": `steps: [{name: {{ (index (services "web") 0).address }}`,
	})
	offers, _, err := r.Offers(offeringHost)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range offers {
		one := o.Instance()
		one.Addresses = nil
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"name":"db","node":"db1","address":"198.51.100.1","port":5432,"tags":["primary","debian"],"ready":false}`,
		`{"name":"node","node":"db1","address":"192.0.2.1","port":9100,"ready":false}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("offers\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if offers[0].Check.Cmd != "pg_isready" || offers[0].Check.Interval.Std().String() != "10s" {
		t.Errorf("check %+v", offers[0].Check)
	}
}

// TestOffersOfSeveralRepositories: the base files of all are read, in their order.
func TestOffersOfSeveralRepositories(t *testing.T) {
	layer := func(name, text string) Layer {
		return Layer{name, fstest.MapFS{"base/services.yaml": {Data: []byte(text)}, "base/jobs.yaml": {Data: []byte("jobs: {}")}}}
	}
	r := Open(layer("one", "services: {'*': [{name: a, port: 1}, {name: b, port: 1}]}"), layer("two", "services: {role=db: [{name: b, port: 2}]}"))
	offers, _, err := r.Offers(offeringHost)
	if err != nil || len(offers) != 2 || offers[0].Port != 1 || offers[1].Port != 2 {
		t.Errorf("%+v, %v", offers, err)
	}
}

// TestOfferMistakes: each with its place; a catalog has them too.
func TestOfferMistakes(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"services: {'*': [{name: a b}]}", `base/services.yaml:1:25: "a b": a service is named with letters, digits and dashes`},
		{"services: {'*': [{port: 1}]}", `base/services.yaml:1:18: "name" is missing`},
		{"services: {'*': [{name: a, prot: 1}]}", `unknown field "prot" (did you mean "port"?)`},
		{"services: {role=web: [{name: a, port: 70000}]}", "base/services.yaml:1:39: 70000 is no port"},
		{"services: {'*': [{name: a, address: x, interface: y}]}", "base/services.yaml:1:51: address and interface exclude each other"},
		{"services: {'*': [{name: a, check: {interval: 1s}}]}", "the check of service a says nothing: give tcp (a port), http"},
		{"services: {'*': [{name: a, check: {tcp: 1, cmd: x}}]}", "the check of service a is to be cmd and tcp: keep one"},
		{"services: {'*': [{name: a, check: {http: health}}]}", `http: "health" is neither a path such as /health nor a URL`},
		{"services: {'*': [{name: a, check: {http: /health}}]}", "http: /health is a path, and service a has no port"},
		{"services: {'*': [{name: a, port: {{ vars.x }}}]}", "vars is not known here: base/services.yaml is read before anything else, and sees server only"},
		{`services: {'*': [{name: '{{ len (services "x") }}'}]}`, "services is not known here"},
		{"services: [a]", "base/services.yaml:1:11: expected a map of targets"},
	} {
		files := map[string]string{"base/services.yaml": c.file}
		_, _, err := repo(files).Offers(offeringHost)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.file, err, c.want)
		}
		if _, again := repo(files).Compile(offeringHost); again == nil || !strings.Contains(again.Error(), c.want) {
			t.Errorf("compile %s: %v", c.file, again)
		}
	}
}

// TestOfferedTwice: a job and base/services.yaml would contradict each other for ever.
func TestOfferedTwice(t *testing.T) {
	_, err := repo(map[string]string{
		"base/services.yaml": "services: {role=db: [{name: db}]}", "base/jobs.yaml": "jobs: {'*': [{name: a}]}",
		"jobs/a.yaml": "steps:\n- {name: s, action: service.publish, parameters: {name: db}}\n",
	}).Compile(offeringHost)
	if err == nil || !strings.Contains(err.Error(), `jobs/a.yaml:2:57: service "db" is offered by this host in base/services.yaml`) {
		t.Error(err)
	}
}

// TestOfferers are hosts of the inventory and registered ones.
func TestOfferers(t *testing.T) {
	in := offeringHost
	in.View = View{Nodes: map[string]Node{"db9": {Name: "db9", Labels: map[string]string{"role": "db"}}, "db2": {Name: "db2"}}}
	cat, err := repo(map[string]string{
		"base/services.yaml": "services: {role=db: [{name: db}]}",
		"nodes/all.yaml":     "nodes: {db1: {labels: {role: db}}, db2: {labels: {role: db}}, web1: {labels: {role: web}}}",
	}).Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cat.Offerers("db"), " "); got != "db1 db2 db9" {
		t.Error(got)
	}
}

// TestServiceSettings: names in DNS need their domain.
func TestServiceSettings(t *testing.T) {
	for file, want := range map[string]string{
		"services: {skydns: true}":                         "pullet.yaml:1:12: skydns needs the domain of the names: add domain: example.org",
		"services: {skydns: true, domain: 'example..org'}": `pullet.yaml:1:26: "example..org" is no domain`,
	} {
		if _, err := repo(map[string]string{"pullet.yaml": file}).Compile(offeringHost); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	_, settings, err := repo(map[string]string{"pullet.yaml": "services: {skydns: true, domain: Example.org.}"}).Offers(offeringHost)
	if err != nil || settings.Zone() != "example.org" || (ServiceSettings{Domain: "example.org"}).Zone() != "" {
		t.Error(settings.Zone(), err)
	}
}

// TestAsked: whoever gives the view is told which services a catalog reads.
func TestAsked(t *testing.T) {
	asked := map[string]bool{}
	in := offeringHost
	in.View = View{Asked: func(name string) { asked[name] = true }}
	cat, err := repo(map[string]string{
		"base/jobs.yaml": "jobs: {'*': [{name: a, conditions: {when: {condition: \"len(services('c')) > 0\"}}}]}",
		"jobs/a.yaml":    "steps: [{name: s, action: cmd.run, parameters: {cmd: '{{ len (services (printf \"%s\" \"a\")) }}'}}]",
	}).Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Template(nil, "x", `{{ services "b" | len }}`, nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := cat.Eval(cat.Jobs[0].Conditions.When.Expression, Judged{}); err != nil {
		t.Error(err)
	}
	if want := map[string]bool{"a": true, "b": true, "c": true}; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %v", asked)
	}
}
