package render

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// varsBase is base/vars.yaml: which nodes get which variables.
type varsBase struct {
	Metadata *Metadata           `yaml:"metadata"`       // names the file; it changes nothing
	Files    targeted[varsEntry] `yaml:"files,required"` // by target; later targets override earlier ones
}

// varsEntry is a variables file of a target.
type varsEntry struct {
	Name string `yaml:"name,required"` // common for vars/common.yaml
	// below vars/: all that exist are merged, earlier ones win; none: the name is the path
	Paths    Strings `yaml:"paths"`
	Optional bool    `yaml:"optional"` // none of the files need exist
	pos      *yaml.Node
}

// targeted is the body of a base file: targets in the file's order, each with its entries.
type targeted[E any] []targetEntries[E]

type targetEntries[E any] struct {
	target  Target
	key     *yaml.Node
	entries []E
	nodes   []*yaml.Node // where each entry stands
}

func (t *targeted[E]) decode(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.failf(n, "expected a map of targets, found %s: for every node write '*'", kindName(n))
		return
	}
	for _, e := range entries(n) {
		if !d.named(e.key, "a target", "a target reads labels itself: role=web") {
			continue
		}
		target, err := ParseTarget(e.key.Value)
		if err != nil {
			d.failf(e.key, "%v", err)
			continue
		}
		one := targetEntries[E]{target: target, key: e.key}
		if e.value.Kind != yaml.SequenceNode {
			if !isNull(e.value) {
				d.failf(e.value, "expected a list of entries such as \"- name: common\", found %s", kindName(e.value))
			}
			continue
		}
		for _, item := range e.value.Content {
			var entry E
			d.into(item, &entry)
			one.entries, one.nodes = append(one.entries, entry), append(one.nodes, item)
		}
		*t = append(*t, one)
	}
}

// compileVars merges the node's variables: later targets override earlier ones, the host's own override git.
func (c *compiler) compileVars() {
	for _, base := range c.files.base("base/vars.yaml") {
		var body varsBase
		if !c.files.decode(base, &body) {
			continue
		}
		for _, t := range body.Files {
			if !c.matches(base, t.key, t.target) {
				continue
			}
			for i, e := range t.entries {
				e.pos = t.nodes[i]
				vars := c.varsOf(base, e)
				c.scope.vars, c.places = merge(c.scope.vars, vars.values), merge(c.places, vars.places)
			}
		}
	}
	c.scope.vars, c.scope.known = merge(c.scope.vars, c.scope.in.HostVars), nil
	if err := c.scope.secrets.addVars(c.scope.in.Secrets.vars); err != nil {
		c.fail(&Error{Pos: Position{File: "vars.d"}, Message: err.Error()})
	}
}

// located are variables and, where that was asked for, the same with a place in each value's stead.
type located struct{ values, places map[string]any }

// varsOf reads the files of one entry, the earlier ones winning.
func (c *compiler) varsOf(base *document, e varsEntry) located {
	paths := []string(e.Paths)
	if len(paths) == 0 {
		paths = []string{e.Name + ".yaml"}
	}
	out, found := located{}, false
	for _, p := range paths {
		path := "vars/" + strings.TrimPrefix(strings.TrimSuffix(p, SealedSuffix), "/")
		if !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
			path += ".yaml"
		}
		if c.repo.exists(path + SealedSuffix) { // what is secret wins over what stands in clear
			found = true
			vars := c.sealedVars(path + SealedSuffix)
			out = located{merge(vars.values, out.values), merge(vars.places, out.places)}
		}
		if p, exists := c.repo.locate(path); exists {
			found = true
			read := c.varsFile
			if c.repo.sealed.isSOPS(p) {
				read = c.sealedVars
			}
			vars := read(path)
			out = located{merge(vars.values, out.values), merge(vars.places, out.places)}
		}
	}
	if !found && !e.Optional {
		err := base.errorAt(e.pos, "variables %q: there is no %s", e.Name, "vars/"+strings.Join(paths, " and no vars/"))
		err.Hint = c.repo.fileHint("vars", e.Name)
		if len(e.Paths) > 0 {
			err.Hint = "at least one of the paths must exist; optional: true allows none"
		}
		c.fail(err)
	}
	return out
}

// varsFile is the content of one variables file: free YAML, or under spec.variables where it has metadata.
func (c *compiler) varsFile(path string) located {
	doc := c.files.named(path)
	if doc == nil || doc.root == nil {
		return located{}
	}
	if doc.root.Kind != yaml.MappingNode {
		c.fail(doc.errorAt(doc.root, "expected a map of variables, found %s", kindName(doc.root)))
		return located{}
	}
	d := &decoder{doc: doc, keepOpaque: true}
	describing := d.described(doc.root, false)
	vars := varsBody(d.any(doc.root), describing)
	c.errs = append(c.errs, d.errs...)
	values, _ := mapOf(vars)
	c.scope.keyed = c.scope.keyed || isOpaqueMap(vars)
	if !c.tracing {
		return located{values: values}
	}
	places, _ := mapOf(varsBody(doc.places(doc.root), describing))
	return located{values, places}
}

// merge lays over on top of base: maps merge deeply, everything else is replaced. Neither argument is changed.
func merge(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	for k, v := range base {
		out[k] = v
	}
	for k, v := range over {
		below, isMap := mapOf(out[k])
		if above, ok := mapOf(v); ok && isMap {
			merged := merge(below, above)
			if v = merged; isOpaqueMap(out[k]) || isOpaqueMap(over[k]) {
				v = opaqueMap(merged)
			}
		}
		out[k] = v
	}
	return out
}
