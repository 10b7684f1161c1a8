package render

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// Requisite is a reference from one step to others of the run, with Salt's meaning.
type Requisite struct {
	Kind   string // require, watch, onchanges, onfail, prereq, listen, use, each with the variants of RequisiteKinds
	Module string // the action's name or its part before the dot; "" means any, "step" a step's name only
	Name   string // a step's name, "job/name", or what the action manages; * ? [] match
	Pos    Position
}

// RequisiteKinds are the words for requisites, as they stand beside a step's parameters or among them. X_in is X
// declared from the other end; X_any is met by one of several; onfail is met by any and onfail_all by all.
func RequisiteKinds() []string {
	return []string{
		"require", "require_in", "require_any", "watch", "watch_in", "watch_any", "onchanges", "onchanges_in",
		"onchanges_any",
		"onfail", "onfail_in", "onfail_any", "onfail_all", "prereq", "prereq_in", "listen", "listen_in", "use", "use_in",
	}
}

func isRequisite(key string) bool { return slices.Contains(RequisiteKinds(), key) }

// requisites are the references under one requisite key: one, or a list.
func (d *decoder) requisites(kind string, n *yaml.Node) []Requisite {
	n = resolve(n)
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	var out []Requisite
	for _, item := range items {
		item = resolve(item)
		one := Requisite{Kind: kind, Pos: d.doc.pos(item)}
		switch {
		case isNull(item):
			continue
		case item.Kind == yaml.ScalarNode:
			one.Name = item.Value
		case item.Kind == yaml.MappingNode && len(item.Content) == 2 && item.Content[1].Kind == yaml.ScalarNode:
			one.Module, one.Name = item.Content[0].Value, item.Content[1].Value
		default:
			d.failf(
				item,
				"%s: expected a step's name or a map such as {file: /etc/motd}, found %s",
				kind,
				kindName(item),
			)
			continue
		}
		out = append(out, one)
	}
	return out
}

// requisiteFields are the requisite keys beside a step's parameters.
type requisiteFields struct {
	Require    requisiteNode `yaml:"require"`     // steps that must succeed before
	RequireIn  requisiteNode `yaml:"require_in"`  // steps that require this one
	RequireAny requisiteNode `yaml:"require_any"` // of these one must succeed before
	// like require, and when one of these changed this step reacts: a service restarts, a command runs
	Watch        requisiteNode `yaml:"watch"`
	WatchIn      requisiteNode `yaml:"watch_in"`      // steps that watch this one
	WatchAny     requisiteNode `yaml:"watch_any"`     // like watch, met by one of these
	OnChanges    requisiteNode `yaml:"onchanges"`     // run only when one of these changed
	OnChangesIn  requisiteNode `yaml:"onchanges_in"`  // steps that run only when this one changed
	OnChangesAny requisiteNode `yaml:"onchanges_any"` // the same as onchanges
	OnFail       requisiteNode `yaml:"onfail"`        // run only when one of these failed
	OnFailIn     requisiteNode `yaml:"onfail_in"`     // steps that run only when this one failed
	OnFailAny    requisiteNode `yaml:"onfail_any"`    // the same as onfail
	OnFailAll    requisiteNode `yaml:"onfail_all"`    // run only when all of these failed
	Prereq       requisiteNode `yaml:"prereq"`        // run before these, and only when they are going to change
	PrereqIn     requisiteNode `yaml:"prereq_in"`     // steps that have this one as prereq
	Listen       requisiteNode `yaml:"listen"`        // like watch, but react at the end of the run
	ListenIn     requisiteNode `yaml:"listen_in"`     // steps that listen to this one
	Use          requisiteNode `yaml:"use"`           // take the parameters of these that are not set here
	UseIn        requisiteNode `yaml:"use_in"`        // steps that take their parameters from this one
}

// anyNode is a value that is decoded later.
type anyNode struct{ node *yaml.Node }

func (a *anyNode) decode(_ *decoder, n *yaml.Node) { a.node = n }

// The kinds of what is decoded later.
type (
	nameNode      struct{ anyNode } // a text
	stepNode      struct{ anyNode } // a stepBody
	itemsNode     struct{ anyNode } // a list, or an expression that gives one
	requisiteNode struct{ anyNode } // one reference, or a list
)

// stepRequisites gathers what a step refers to: beside its parameters, and among them, where Salt has them.
func (d *decoder) stepRequisites(body *yaml.Node, params *Params) []Requisite {
	var out []Requisite
	for _, e := range entries(body) {
		if isRequisite(e.key.Value) {
			out = append(out, d.requisites(e.key.Value, e.value)...)
		}
	}
	for _, kind := range RequisiteKinds() {
		if e, ok := params.remove(kind); ok {
			out = append(out, d.requisites(kind, e.value)...)
		}
	}
	return out
}
