package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/safetext"
)

// ServicesFile is where a repository says who offers which services.
const ServicesFile = "base/services.yaml"

// servicesBase is base/services.yaml: who offers which services. It is read before anything else, and sees server only.
type servicesBase struct {
	Metadata *Metadata `yaml:"metadata"` // names the file; it changes nothing
	// by target; announced at every pull before jobs are compiled; of entries with one name, the last that the host
	// matches counts
	Services targeted[Offer] `yaml:"services,required"`
}

// Offer is a service that the hosts of a target offer.
type Offer struct {
	Name string `yaml:"name,required"` // of the service: letters, digits and dashes
	Port int    `yaml:"port"`          // on which it answers
	// whose first address is the one to use; default: that of the default route
	Interface string  `yaml:"interface"`
	Address   string  `yaml:"address"` // the one to use, instead of an interface's
	Tags      Strings `yaml:"tags"`    // words for those who choose among instances
	// asked after the validations of every pull; without one, a host that is validated is ready
	Check *ServiceCheck `yaml:"check"`

	instance Service
}

// ServiceCheck tells whether a service works: one of tcp, http and cmd.
type ServiceCheck struct {
	TCP int `yaml:"tcp"` // a port of the announced address that takes connections
	// a URL, or a path at the announced address and port, that answers GET with a status below 400
	HTTP     string   `yaml:"http"`
	Cmd      string   `yaml:"cmd"`      // a command line for /bin/sh that ends with 0
	Interval Duration `yaml:"interval"` // pullet agent also asks so often between two pulls; default at each pull only
	Timeout  Duration `yaml:"timeout"`  // how long an answer may take; default 5s
}

// Instance is the service as this node offers it. Its address is empty where the interface has none.
func (o Offer) Instance() Service { return o.instance }

// offering is who offers a service, as far as one node's rendering of the file tells.
type offering map[string][]Target

// ValidServiceName reports a name that can be part of a key, and of a name in DNS.
func ValidServiceName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (r != '-' || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return name != "" && len(name) <= 63
}

// Offers are the services that a node offers, and how services are shown outside. Nothing else of the repository is
// looked at but the settings and the inventory: what cannot be compiled yet may lack nothing but the address of another
// node.
func (r *Repository) Offers(in Input) ([]Offer, ServiceSettings, error) {
	c := r.compiler(in)
	release := r.enter(c.scope)
	defer release()
	c.identify()
	c.compileServices()
	return c.offers, c.fleet.Services, c.errs.Err()
}

// HasServices reports that somebody may offer something: without a file, nobody does.
func (r *Repository) HasServices() bool { return r.exists(ServicesFile) }

// compileServices collects what the node offers.
func (c *compiler) compileServices() {
	c.offering = offering{}
	mine := map[string]Offer{}
	for _, base := range c.files.base(ServicesFile) {
		var body servicesBase
		c.files.decode(base, &body)
		for _, t := range body.Services {
			yes := c.matches(base, t.key, t.target)
			for i, o := range t.entries {
				c.offering[o.Name] = append(c.offering[o.Name], t.target)
				if c.checkOffer(base, t.nodes[i], o) && yes {
					mine[o.Name] = c.offer(o)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		c.offers = append(c.offers, mine[name])
	}
}

// offer works the addresses out.
func (c *compiler) offer(o Offer) Offer {
	use, all := c.scope.addresses(o.Interface)
	if o.Address != "" {
		use = o.Address
	}
	o.instance = Service{
		Name:      o.Name,
		Node:      c.scope.in.Node.Name,
		Address:   use,
		Addresses: all,
		Port:      o.Port,
		Tags:      slices.Clone(o.Tags),
	}
	return o
}

// checkOffer finds what is wrong with one entry.
func (c *compiler) checkOffer(doc *document, at *yaml.Node, o Offer) bool {
	before := len(c.errs)
	wrong := func(field, format string, args ...any) {
		node := at
		for _, e := range entries(at) {
			if e.key.Value == field {
				node = e.value
			}
		}
		c.fail(doc.errorAt(node, format, args...))
	}
	if o.Name != "" && !ValidServiceName(o.Name) { // a missing one was reported
		wrong("name", "%q: a service is named with letters, digits and dashes", o.Name)
	}
	if o.Port < 0 || o.Port > 65535 {
		wrong("port", "%d is no port", o.Port)
	}
	if o.Address != "" && !safetext.Address(o.Address) {
		wrong("address", "%q is neither an IP address nor the name of a host", o.Address)
	}
	if o.Address != "" && o.Interface != "" {
		wrong("interface", "address and interface exclude each other: keep one")
	}
	if o.Check == nil {
		return before == len(c.errs) && o.Name != ""
	}
	switch ways := o.Check.ways(); {
	case len(ways) == 0:
		wrong(
			"check",
			"the check of service %s says nothing: give tcp (a port), http (a path or URL) or cmd (a command line)",
			o.Name,
		)
	case len(ways) > 1:
		wrong("check", "the check of service %s is to be %s: keep one", o.Name, strings.Join(ways, " and "))
	case o.Check.TCP < 0 || o.Check.TCP > 65535:
		wrong("check", "tcp: %d is no port", o.Check.TCP)
	case o.Check.HTTP != "" && !o.Check.url() && !strings.HasPrefix(o.Check.HTTP, "/"):
		wrong(
			"check",
			"http: %q is neither a path such as /health nor a URL such as http://127.0.0.1:8080/health",
			o.Check.HTTP,
		)
	case o.Check.HTTP != "" && !o.Check.url() && o.Port == 0:
		wrong("check", "http: %s is a path, and service %s has no port: give port, or a URL", o.Check.HTTP, o.Name)
	}
	return before == len(c.errs) && o.Name != ""
}

// ways are the kinds of check that are set.
func (s *ServiceCheck) ways() []string {
	var out []string
	for name, set := range map[string]bool{"tcp": s.TCP != 0, "http": s.HTTP != "", "cmd": s.Cmd != ""} {
		if set {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *ServiceCheck) url() bool {
	return strings.HasPrefix(s.HTTP, "http://") || strings.HasPrefix(s.HTTP, "https://")
}

// checkOwners refuses a service that base/services.yaml and a job's step both announce: each would undo what the other
// does.
func (c *compiler) checkOwners() {
	offered := map[string]bool{}
	for _, o := range c.offers {
		offered[o.Name] = true
	}
	for _, j := range c.jobs.all {
		for _, s := range j.Steps {
			if name := s.Params.Text("name"); offered[name] &&
				(s.Action == "service.publish" || s.Action == "service.withdraw") {
				e := s.ErrorAt(
					s.Params.Position("name", s.Pos),
					"service %q is offered by this host in %s: this step would contradict it at every pull",
					name,
					ServicesFile,
				)
				e.Hint = "keep one of them"
				c.fail(e)
			}
		}
	}
}

// Offers are the services that base/services.yaml has the node offer.
func (c *Catalog) Offers() []Offer { return c.offers }

// Offerers are the nodes that should offer a service by base/services.yaml: those of the inventory, and others that are
// registered.
func (c *Catalog) Offerers(service string) []string {
	all := maps.Clone(c.scope.in.View.Nodes)
	if all == nil {
		all = map[string]Node{}
	}
	maps.Copy(all, c.Inventory)
	var out []string
	for name, n := range all {
		if slices.ContainsFunc(c.offering[service], func(t Target) bool { return t.Matches(name, n.Labels) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// earlyFuncs are the functions of a template that is rendered before there is anything but the host.
func earlyFuncs(funcs template.FuncMap) template.FuncMap {
	out := maps.Clone(funcs)
	for name := range roots(nil) {
		if name != "server" && name != "Server" {
			out[name] = tooEarly(name)
		}
	}
	return out
}

// tooEarly stands for a root that is not there yet.
func tooEarly(name string) any {
	return func(...any) (any, error) {
		return nil, fmt.Errorf(
			"%s is not known here: %s is read before anything else, and sees server only",
			name,
			ServicesFile,
		)
	}
}
