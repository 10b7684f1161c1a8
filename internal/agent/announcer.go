package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/offer"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// offered is what a version has this node offer.
type offered struct {
	list []render.Offer
	zone string // in which services stand in DNS; "" is nowhere
}

// prepare announces what a version has this node offer, and makes its program. In that order: what cannot be compiled
// yet may lack nothing but the address of another node, which may lack this one's.
func (a *announcer) prepare(ctx context.Context, v *state.Version) (*compiled, error) {
	if err := a.announceEarly(ctx, v); err != nil {
		return nil, err
	}
	return a.compiler.compile(ctx, v)
}

// announcer tells the fleet what this node offers, in one pull.
type announcer struct {
	*self
	*joined
	host      func(version string) *apply.Host
	versions  *versions
	local     *local
	compiler  *compiler
	out       *Outcome
	early     map[string]bool // services that were announced before their version was compiled
	announced string          // that version
}

// announceEarly announces what is new in a version, once in a pull. What the node offers already stays as it is until
// it runs that version.
func (a *announcer) announceEarly(ctx context.Context, v *state.Version) error {
	if a.store == nil || a.announced == v.ID {
		return nil
	}
	repo, err := a.versions.repository(ctx, v)
	if err != nil || !repo.HasServices() {
		return err
	}
	list, _, err := repo.Offers(a.compiler.input(ctx, v))
	var mistakes render.ErrorList
	if errors.As(err, &mistakes) { // told when it is compiled
		return nil
	}
	if err != nil {
		return err
	}
	for _, o := range list {
		a.early[o.Name] = true
	}
	if err := a.announce(ctx, list, !v.Same(a.local.Running)); err != nil {
		return err
	}
	a.announced = v.ID
	return nil
}

// announce publishes services, or, with keep, those that are not there yet. On disk first: what is announced and
// forgotten would never be withdrawn.
func (a *announcer) announce(ctx context.Context, list []render.Offer, keep bool) error {
	names := slices.Clone(a.local.Offers)
	for _, o := range list {
		switch {
		case o.Instance().Address == "":
			a.warnOnce(
				fmt.Errorf("service %s is not announced: this host has no address%s", o.Name, onInterface(o.Interface)),
			)
		case !slices.Contains(names, o.Name):
			names = append(names, o.Name)
		}
	}
	if err := a.saveOffers(names); err != nil {
		return err
	}
	var errs []error
	for _, o := range list {
		if one := o.Instance(); one.Address != "" {
			errs = append(errs, a.store.Services.Announce(ctx, o.Name, a.config.Node.Name, instance(one), keep))
		}
	}
	return errors.Join(errs...)
}

func onInterface(name string) string {
	if name == "" {
		return " for its default route"
	}
	return " on interface " + name
}

func (a *announcer) warnOnce(err error) {
	if !slices.ContainsFunc(a.out.Warnings, func(w error) bool { return w.Error() == err.Error() }) {
		a.out.warn(err)
	}
}

// saveOffers remembers the services that the node announced.
func (a *announcer) saveOffers(names []string) error {
	slices.Sort(names)
	if slices.Equal(names, a.local.Offers) {
		return nil
	}
	a.local.Offers = names
	return a.local.save()
}

// check asks the checks of what the node offers, after its validations: name -> why it does not work.
func (a *announcer) check(ctx context.Context, v *state.Version, report *apply.Report) map[string]string {
	if a.store == nil || report.Pending() || report.Failed() {
		return nil
	}
	broken := map[string]string{}
	for _, o := range a.compiler.offers[v.ID].list {
		if o.Instance().Address == "" {
			continue
		}
		if err := offer.Check(ctx, a.host(v.ID), o); err != nil {
			broken[o.Name] = err.Error()
			a.warnOnce(fmt.Errorf("service %s is not ready: %w", o.Name, err))
		}
	}
	return broken
}

// offer tells the fleet what this node offers and whether it works, once a run has ended. What works is what was
// validated, and whose check succeeded. What was ready stays so while the node waits.
func (a *announcer) offer(ctx context.Context, v *state.Version, validated bool, broken map[string]string) error {
	offered := a.compiler.offers[v.ID]
	if v.Same(a.local.Running) {
		if err := a.announce(ctx, offered.list, false); err != nil {
			return err
		}
	}
	names := map[string]bool{} // whether the version that was run has it
	for id := range a.local.journal.Managed().Things {
		if name, ok := strings.CutPrefix(id, "service "); ok {
			names[name] = true
		}
	}
	for _, name := range a.local.Offers {
		names[name] = slices.ContainsFunc(offered.list, func(o render.Offer) bool { return o.Name == name })
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		why := broken[name]
		errs = append(
			errs,
			a.store.Services.SetReady(ctx, name, a.config.Node.Name, offered.zone, validated && names[name] && why == "", why),
		)
		if offered.zone != "" {
			errs = append(errs, a.store.Services.SweepDNS(ctx, name, offered.zone))
		}
	}
	return errors.Join(errs...)
}

// withdraw takes back what the node announced and the version that it runs does not have it offer, such as after a
// change of its labels. Whether the run succeeded makes no difference.
func (a *announcer) withdraw(ctx context.Context, v *state.Version) error {
	if !v.Same(a.local.Running) {
		return nil
	}
	list := a.compiler.offers[v.ID].list
	var stays []string
	for _, name := range a.local.Offers {
		if a.early[name] ||
			slices.ContainsFunc(
				list,
				func(o render.Offer) bool { return o.Name == name && o.Instance().Address != "" },
			) {
			stays = append(stays, name)
			continue
		}
		if err := a.store.Services.Withdraw(ctx, name, a.config.Node.Name); err != nil {
			return err
		}
	}
	return a.saveOffers(stays)
}

// lacks is the wait of a node that cannot compile a version because nobody has announced a service yet, or because a
// node of the inventory never came: all that is wrong stands where those are read. That needs more time, and is no
// fault of the commit or of the node.
func (c *compiler) lacks(ctx context.Context, v *state.Version, mistakes render.ErrorList) *lock.Wait {
	var first *lock.Wait
	for _, m := range mistakes {
		w := c.lacksService(v, m)
		if w == nil {
			w = c.lacksNode(ctx, v, m)
		}
		if w == nil {
			return nil
		}
		first = cmp.Or(first, w)
	}
	return first
}

// lacksService is the wait for a service that a mistake is about; nil where it is about none.
func (c *compiler) lacksService(v *state.Version, m *render.Error) *lock.Wait {
	lacking, why := m.Awaits(func(name string) (int, error) { return len(c.known[name]), nil }, c.asked.sorted()...)
	if lacking == "" {
		return nil
	}
	return &lock.Wait{
		Kind:   state.WaitService,
		Gate:   "service " + lacking,
		Reason: fmt.Sprintf("%s, and version %s does not compile without it: %s", why, v, firstLine(render.ErrorList{m})),
		Remedy: state.Act("it goes on when a host offers it, by base/services.yaml or service.publish"),
		Since:  time.Now(),
	}
}

// lacksNode is the wait for a node of the inventory that a mistake is about and that never came; nil where it is about
// none.
func (c *compiler) lacksNode(ctx context.Context, v *state.Version, m *render.Error) *lock.Wait {
	lacking := c.unseen(ctx, v, m.Servers)
	if lacking == "" {
		return nil
	}
	return &lock.Wait{
		Kind: state.WaitNode,
		Gate: "node " + lacking,
		Reason: fmt.Sprintf("nodes/ lists it and it never came, and version %s does not compile without it: %s",
			v, firstLine(render.ErrorList{m})),
		Remedy: state.Act("start it, or remove it from nodes/"),
		Since:  time.Now(),
	}
}

// unseen is the first node of the inventory that one of these targets matches and that is not registered; "" where
// there is none.
func (c *compiler) unseen(ctx context.Context, v *state.Version, targets []string) string {
	if len(targets) == 0 {
		return ""
	}
	repo, err := c.versions.repository(ctx, v)
	if err != nil {
		return ""
	}
	inventory, err := repo.Inventory()
	if err != nil {
		return ""
	}
	return inventory.Unseen(render.View{Nodes: c.nodes}, targets)
}
