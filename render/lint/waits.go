package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/render"
)

// A host that waits for a service holds up who comes after it in the rollout, and these may be the ones who offer the
// service: nobody has failed, and nobody goes on. What follows walks through the first rollout of a fleet, on paper:
// who gets through, what these offer, who gets through with that. A wait that is left over at the end is told, with the
// reason.

// firstRollout is what the catalogs of an inventory tell of who waits for whom.
type firstRollout struct {
	rules   render.Rollout
	groupOf map[string]string                    // node -> the group in which it takes turns
	members map[string][]string                  // group -> its nodes
	offers  map[string]map[string]render.Service // service -> node -> its instance
	early   map[string]bool                      // by service/node: announced before anything is compiled
	waits   map[string]*serviceWait              // by place, group and what they need
}

// serviceWait is a place at which nodes of a group wait for services.
type serviceWait struct {
	group    string
	nodes    []string
	services []string
	met      func(known instancesOf) bool
	enough   string        // what it waits for, in words
	counts   bool          // it waits for a number of instances of one service
	ready    bool          // that they are announced is not enough
	place    *render.Error // where it stands
}

// instancesOf are the instances of services by name.
type instancesOf map[string][]render.Service

func newFirstRollout() *firstRollout {
	return &firstRollout{
		groupOf: map[string]string{}, members: map[string][]string{},
		offers: map[string]map[string]render.Service{}, early: map[string]bool{},
		waits: map[string]*serviceWait{},
	}
}

// learn takes in the catalog of one node.
func (f *firstRollout) learn(c *render.Catalog) {
	name := c.Node.Name
	if _, listed := c.Inventory[name]; !listed { // what others offer, and when they come, nobody knows
		return
	}
	f.rules = c.Fleet.Rollout
	if _, again := f.groupOf[name]; !again {
		group := f.rules.Group(name, c.Node.Labels)
		f.groupOf[name], f.members[group] = group, append(f.members[group], name)
	}
	for _, o := range c.Offers() {
		f.offer(o.Instance())
		f.early[o.Name+"/"+name] = true
	}
	for _, j := range c.Jobs {
		if !skips(j.Conditions) {
			f.noteConditions(c, j.Conditions)
		}
		for _, s := range j.Steps {
			if s.Action == "service.publish" {
				f.offer(published(s, name))
			}
			if !skips(j.Conditions) && !optional(s) {
				f.noteConditions(c, s.Conditions)
				f.noteStep(c, s)
			}
		}
	}
}

// skips reports a condition that lets a step out rather than wait for it.
func skips(c render.Conditions) bool { return c.When != nil && c.When.Retry == nil }

// optional reports a step that need not run for its node to get through.
func optional(s *render.Step) bool {
	depends := slices.ContainsFunc(s.Requisites, func(r render.Requisite) bool {
		return strings.HasPrefix(r.Kind, "onchanges") || strings.HasPrefix(r.Kind, "onfail") || r.Kind == "prereq"
	})
	return depends || skips(s.Conditions) || s.Options.Target != nil
}

// published is the instance that a step with service.publish announces.
func published(s *render.Step, node string) render.Service {
	port, _ := strconv.Atoi(s.Params.Text("port")) // what is none was reported
	return render.Service{
		Name: s.Params.Text("name"), Node: node,
		Address: s.Params.Text("address"), Port: port, Tags: s.Params.Texts("tags"),
	}
}

func (f *firstRollout) offer(s render.Service) {
	if f.offers[s.Name] == nil {
		f.offers[s.Name] = map[string]render.Service{}
	}
	f.offers[s.Name][s.Node] = s
}

// noteStep remembers a step with service.wait.
func (f *firstRollout) noteStep(c *render.Catalog, s *render.Step) {
	name, kind, tag := s.Params.Text("name"), s.Params.Text("kind"), s.Params.Text("tag")
	if s.Action != "service.wait" || s.Broken() || s.Params.Waits() {
		return
	}
	count, _ := strconv.Atoi(s.Params.Text("count"))
	count = max(count, 1)
	w := &serviceWait{
		services: []string{name}, counts: true, ready: kind != "announced",
		place: s.ErrorAt(s.Params.Position("name", s.Pos), "step %q", s.Name),
	}
	w.enough = fmt.Sprintf("service %q", name)
	if count > 1 {
		w.enough = fmt.Sprintf("%d instances of service %q", count, name)
	}
	if tag != "" {
		w.enough += " with the tag " + tag
	}
	w.met = func(known instancesOf) bool {
		n := 0
		for _, one := range known[name] {
			if (one.Ready || !w.ready) && (tag == "" || slices.Contains(one.Tags, tag)) {
				n++
			}
		}
		return n >= count
	}
	f.add(c, w)
}

// noteConditions remembers the conditions that ask for services which they name.
func (f *firstRollout) noteConditions(c *render.Catalog, conditions render.Conditions) {
	for _, one := range conditions.All() {
		e := one.Expression
		var names []string
		for _, s := range render.ServicesIn(e.Text) {
			names = append(names, s.Name)
		}
		if len(names) == 0 {
			continue
		}
		f.add(c, &serviceWait{
			services: names, ready: true, place: e.ErrorHere("the condition"), enough: "service " + quoted(names),
			met: func(known instancesOf) bool { return c.HoldsWith(e, known) },
		})
	}
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, strconv.Quote(n))
	}
	return strings.Join(out, " and ")
}

// add remembers a wait. One that several nodes of a group have is one.
func (f *firstRollout) add(c *render.Catalog, w *serviceWait) {
	name := c.Node.Name
	w.group = f.groupOf[name]
	key := fmt.Sprint(w.place.Pos, "\x00", w.group, "\x00", w.enough, "\x00", w.ready)
	if f.waits[key] == nil {
		f.waits[key] = w
	}
	if !slices.Contains(f.waits[key].nodes, name) {
		f.waits[key].nodes = append(f.waits[key].nodes, name)
	}
}

// findings are the waits that would stand in the first rollout of a fleet.
func (f *firstRollout) findings() render.ErrorList {
	var out render.ErrorList
	everybody := map[string]bool{}
	for name := range f.groupOf {
		everybody[name] = true
	}
	all := f.known(everybody)
	maps.DeleteFunc(f.waits, func(_ string, w *serviceWait) bool {
		met := w.met(all)
		if !met && w.counts && len(f.offers[w.services[0]]) > 0 {
			out = append(out, w.warning(fmt.Sprintf(
				"waits for %s, and the hosts of the inventory that offer it are not so many: %s",
				w.enough, f.who(w.services, nil)),
				"lower the count, or have more hosts offer it in "+render.ServicesFile))
		}
		return !met // what nobody offers has a warning of its own; what else a condition asks for is not known
	})
	done := f.getThrough()
	for _, key := range slices.Sorted(maps.Keys(f.waits)) {
		if w := f.waits[key]; f.mayStart(w.group, done) && !w.met(f.known(done)) {
			out = append(out, f.stands(w, done))
		}
	}
	return out
}

// getThrough are the nodes that get through.
func (f *firstRollout) getThrough() map[string]bool {
	done := map[string]bool{}
	for more := true; more; {
		more = false
		known, held := f.known(done), map[string]bool{}
		for _, w := range f.waits {
			if !w.met(known) {
				for _, n := range w.nodes {
					held[n] = true
				}
			}
		}
		for group, nodes := range f.members {
			if !f.mayStart(group, done) {
				continue
			}
			for _, n := range nodes {
				if !done[n] && !held[n] {
					done[n], more = true, true
				}
			}
		}
	}
	return done
}

// mayStart reports a group before which nobody is left. One that is frozen counts as through: somebody lifts that.
func (f *firstRollout) mayStart(group string, done map[string]bool) bool {
	for _, before := range f.rules.Depends(group) {
		nodes := f.members[before]
		if f.rules.LimitFor(before, len(nodes)) > 0 &&
			slices.ContainsFunc(nodes, func(n string) bool { return !done[n] }) {
			return false
		}
	}
	return true
}

// known are the services while these nodes are through: theirs are ready, and announced is what needs no turn or has
// had it.
func (f *firstRollout) known(done map[string]bool) instancesOf {
	out, started := instancesOf{}, map[string]bool{}
	for group := range f.members {
		started[group] = f.mayStart(group, done)
	}
	for service, byNode := range f.offers {
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			one := byNode[node]
			one.Ready = done[node]
			if one.Ready || f.early[service+"/"+node] || started[f.groupOf[node]] {
				out[service] = append(out[service], one)
			}
		}
	}
	return out
}

// who are the nodes that offer one of the services and are not among those who are through.
func (f *firstRollout) who(services []string, done map[string]bool) string {
	return render.SomeHosts(f.missing(services, done))
}

func (f *firstRollout) missing(services []string, done map[string]bool) []string {
	found := map[string]bool{}
	for _, s := range services {
		for node := range f.offers[s] {
			if !done[node] {
				found[node] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// stands says why a wait does not end.
func (f *firstRollout) stands(w *serviceWait, done map[string]bool) *render.Error {
	var later []string
	missing := f.missing(w.services, done)
	for _, n := range missing {
		if f.comesAfter(f.groupOf[n], w.group) {
			later = append(later, n)
		}
	}
	state := "to be ready"
	if !w.ready {
		state = "to be announced"
	}
	hint := "move the wait to a job of those who come later, or change the order"
	if w.ready && !slices.ContainsFunc(missing, func(n string) bool { return !f.early[w.services[0]+"/"+n] }) {
		hint += ", or wait for kind: announced where an address is enough"
	}
	hint += "; where it is there from an earlier version, the rollout goes on"
	if len(later) > 0 {
		return w.warning(fmt.Sprintf("waits for %s %s, and who offers it starts only when %s is through: %s",
			w.enough, state, groupName(w.group), render.SomeHosts(later)), hint)
	}
	return w.warning(fmt.Sprintf("waits for %s %s, and who offers it waits in turn: %s%s",
		w.enough, state, render.SomeHosts(missing), f.waitsAt(missing, w)), hint)
}

// waitsAt is where others wait.
func (f *firstRollout) waitsAt(nodes []string, but *serviceWait) string {
	for _, key := range slices.Sorted(maps.Keys(f.waits)) {
		w := f.waits[key]
		of := func(n string) bool { return slices.Contains(nodes, n) }
		if w.place.Pos != but.place.Pos && slices.ContainsFunc(w.nodes, of) {
			return " at " + w.place.Pos.String()
		}
	}
	return " at this place"
}

func groupName(group string) string {
	switch group {
	case render.CanaryGroup:
		return "the canary"
	case "":
		return "every host without a role"
	}
	return "role " + group
}

// comesAfter reports a group that starts only when the other is through, directly or not.
func (f *firstRollout) comesAfter(group, other string) bool {
	seen, open := map[string]bool{}, []string{group}
	for len(open) > 0 {
		for _, g := range f.rules.Depends(open[0]) {
			if !seen[g] {
				seen[g], open = true, append(open, g)
			}
		}
		open = open[1:]
	}
	return seen[other]
}

func (w *serviceWait) warning(message, hint string) *render.Error {
	e := *w.place
	e.Severity, e.Message, e.Hint = render.Warning, e.Message+" "+message, hint
	return &e
}
