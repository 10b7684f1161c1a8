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

// RequisiteKinds are the words for requisites, as they stand beside a step's parameters or among them. X_in is X declared from the other
// end; X_any is met by one of several; onfail is met by any and onfail_all by all.
func RequisiteKinds() []string {
	return []string{
		"require", "require_in", "require_any", "watch", "watch_in", "watch_any", "onchanges", "onchanges_in", "onchanges_any",
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
			d.failf(item, "%s: expected a step's name or a map such as {file: /etc/motd}, found %s", kind, kindName(item))
			continue
		}
		out = append(out, one)
	}
	return out
}

// requisiteFields are the requisite keys beside a step's parameters.
type requisiteFields struct {
	Require      anyNode `yaml:"require"`
	RequireIn    anyNode `yaml:"require_in"`
	RequireAny   anyNode `yaml:"require_any"`
	Watch        anyNode `yaml:"watch"`
	WatchIn      anyNode `yaml:"watch_in"`
	WatchAny     anyNode `yaml:"watch_any"`
	OnChanges    anyNode `yaml:"onchanges"`
	OnChangesIn  anyNode `yaml:"onchanges_in"`
	OnChangesAny anyNode `yaml:"onchanges_any"`
	OnFail       anyNode `yaml:"onfail"`
	OnFailIn     anyNode `yaml:"onfail_in"`
	OnFailAny    anyNode `yaml:"onfail_any"`
	OnFailAll    anyNode `yaml:"onfail_all"`
	Prereq       anyNode `yaml:"prereq"`
	PrereqIn     anyNode `yaml:"prereq_in"`
	Listen       anyNode `yaml:"listen"`
	ListenIn     anyNode `yaml:"listen_in"`
	Use          anyNode `yaml:"use"`
	UseIn        anyNode `yaml:"use_in"`
}

// anyNode is a value that is decoded later.
type anyNode struct{ node *yaml.Node }

func (a *anyNode) decode(_ *decoder, n *yaml.Node) { a.node = n }

// stepRequisites gathers what a step refers to: beside its parameters, and among them, where Salt has them.
func (d *decoder) stepRequisites(body *yaml.Node, params *Params) []Requisite {
	var out []Requisite
	for _, e := range entries(body) {
		if isRequisite(e.key.Value) {
			out = append(out, d.requisites(e.key.Value, e.value)...)
		}
	}
	for _, kind := range RequisiteKinds() {
		if e, ok := params.take(kind); ok {
			out = append(out, d.requisites(kind, e.value)...)
		}
	}
	return out
}
