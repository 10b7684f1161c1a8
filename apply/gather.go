package apply

// gathering lets a step that starts belong to a group, if it may.
func (c *schedule) gathering(t *turn) {
	if !c.x.mayGroup(t.step) || t.batch != nil {
		return
	}
	if c.group == nil {
		c.group = newGroup()
	}
	t.group = c.group
	c.group.probing[t.step] = true
}

// beside reports that a step may start while there is a group: as one of it, or where the order is free. What comes
// behind it in the order of the file, and cannot belong to it, waits until it has ended.
func (c *schedule) beside(s *boundStep) bool {
	g := c.group
	if c.x.mayGroup(s) {
		return !g.shut && !g.full && len(g.turns)+len(g.probing) < atMostGrouped
	}
	return s.ordering() != oneByOne || len(g.turns)+len(g.probing) == 0
}

// shut closes the group when no more steps come to it, and makes its files durable while the schedule goes on.
func (c *schedule) shut() {
	g := c.group
	switch {
	case g == nil || g.shut || len(g.probing) > 0:
		return
	case len(g.turns) == 0: // nobody had anything to change
		c.group = nil
		return
	}
	g.close()
	go func() {
		g.err = c.x.harden(c.run, g)
		c.tell(event{durable: g})
	}()
}

// handle brings the group up to date with an event of the schedule.
func (g *group) handle(e event) {
	delete(g.probing, e.step)
	if e.gathers {
		g.turns, g.unfinished[e.step], g.full = append(g.turns, e.turn), true, g.full || e.alone
	}
	if e.end {
		delete(g.unfinished, e.step)
	}
}

// leave waits until the files of the group are durable that a step cannot belong to after all, and it is the step's
// turn again, alone.
func (c *schedule) leave(s *boundStep) {
	t := &turn{step: s, goOn: make(chan struct{})}
	c.tell(event{step: s, turn: t, gathers: true, alone: true})
	<-t.goOn
}

// released takes one of the reasons away for which a step does not start yet.
func (c *schedule) released(s *boundStep) {
	if c.open[s]--; c.open[s] == 0 {
		c.ready = append(c.ready, &turn{step: s})
	}
}
