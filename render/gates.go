package render

import "slices"

// gated reports a step that nodes wait for each other at.
func (o RunOptions) gated() bool {
	return o.Sync || o.Serialize != nil || o.Target != nil || o.FailAfterAllTargetsRan
}

// WaitsForHosts reports that hosts wait for each other in the jobs: a step has sync, serialize or target.
func (c *Catalog) WaitsForHosts() bool {
	return slices.ContainsFunc(c.Jobs, func(j *Job) bool {
		return slices.ContainsFunc(j.Steps, func(s *Step) bool { return s.Options.gated() })
	})
}

// checkGateName refuses a name that may differ between nodes for a step with a gate: the gate is found by the name, on
// every node.
func (d *decoder) checkGateName(b *stepBody, o RunOptions) {
	if !o.gated() {
		return
	}
	for _, e := range entries(b.node) {
		if e.key.Value == "name" && !d.doc.from.asWritten(e.key, e.value) {
			d.failf(
				e.value,
				"a step with sync, serialize or target has a name without template actions: nodes find each other by it",
			)
		}
	}
}

// gates finds waits that could never end, or that leave more nodes half changed than the limit says.
func (r *crossReferences) gates() {
	roots := map[string]string{}
	for _, j := range r.c.jobs.all {
		for _, s := range j.Steps {
			if !s.Options.gated() {
				continue
			}
			if other := roots[j.Name]; len(j.others) > 0 && other == "" {
				roots[j.Name] = j.others[0]
				r.c.fail(
					s.ErrorAt(
						s.Pos,
						"step %q waits for other nodes, and its job comes with both %s and %s: list %s in base/jobs.yaml, so that "+
							"all nodes mean the same ones",
						s.Name,
						j.root,
						j.others[0],
						j.Name,
					),
				)
			}
		}
		for _, s := range j.Steps {
			r.stages(j, s)
		}
	}
}

// stages refuses a step that reads a result which only nodes of a later stage make.
func (r *crossReferences) stages(j *Job, s *Step) {
	rollout := r.c.fleet.Rollout
	own := rollout.Stage(rollout.Group(r.c.scope.in.Node.Name, r.c.scope.in.Node.Labels))
	for _, name := range s.reads(r.c.scope) {
		t, _ := r.find(name, j.Name)
		if t == nil || t.Options.Target == nil || t.Options.Target.Hosts.Text == "" {
			continue
		}
		earliest, at := -1, ""
		for node, n := range r.c.inventory {
			if !t.Options.Target.Hosts.Matches(node, n.Labels) {
				continue
			}
			if stage := rollout.Stage(rollout.Group(node, n.Labels)); earliest < 0 || stage < earliest ||
				stage == earliest && node < at {
				earliest, at = stage, node
			}
		}
		if earliest > own {
			r.c.fail(
				s.ErrorAt(
					s.Pos,
					"step %q reads the result of %q, which only nodes of a later stage of the rollout make (%s): this node would "+
						"wait for nodes that wait for it",
					s.Name,
					t.ID(),
					at,
				),
			)
		}
	}
}

// reads are the names of the steps that a step's parameters and conditions read.
func (s *Step) reads(scope *scope) []string {
	out := slices.Clone(s.after)
	for _, number := range s.waits {
		out = append(out, scope.waiting[number].steps...)
	}
	return out
}

// halfChanged warns of steps that change hosts before a barrier in a role that takes turns: all of its nodes get there
// before any goes on.
func (c *Catalog) halfChanged() ErrorList {
	var out ErrorList
	rollout, roster := c.Fleet.Rollout, 0
	group := rollout.Group(c.Node.Name, c.Node.Labels)
	for name, n := range c.Inventory {
		if rollout.Group(name, n.Labels) == group {
			roster++
		}
	}
	limit := rollout.LimitFor(group, roster)
	if limit >= roster {
		return nil
	}
	for _, j := range c.Jobs {
		for i, s := range j.Steps {
			if !s.Options.Sync || i == 0 || j.Validation {
				continue
			}
			e := s.ErrorAt(
				s.Pos,
				"step %q waits for all nodes, and %q before it may change them: more than %d of role %s are half changed then",
				s.Name,
				j.Steps[i-1].Name,
				limit,
				group,
			)
			e.Severity, e.Hint = Warning, "put the barrier first, or what comes before it into a job of an earlier version"
			out = append(out, e)
		}
	}
	return out
}
