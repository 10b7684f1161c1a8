package state

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

func (v *Version) check(k Key) error {
	var c checks
	c.unless(k.kind.shape != "history/SEQ" || v.Seq == k.Place, "it is about another version than its key")
	c.unless(v.ID != "" && versionID(v.ID), "%s is no version", quoted(v.ID))
	c.version(v.Previous)
	c.unless(len(v.Commits) <= 100 && len(v.Rewound) <= 100, "it has %d commits, of 100 at most", len(v.Commits))
	for _, one := range slices.Concat(v.Commits, v.Rewound) {
		c.commit(one)
	}
	for _, list := range [][]Commit{v.Commits, v.Rewound} {
		for i := range list {
			list[i].Subject = safetext.Line(list[i].Subject, MaxSubject)
			list[i].Author = safetext.Line(list[i].Author, MaxSubject)
		}
	}
	c.unless(len(v.Release) <= maxText && !safetext.Obeyed(v.Release), "its release is not one line")
	c.count("seq", v.Seq, math.MaxInt32)
	c.count("epoch", v.Epoch, v.Seq)
	c.unless(
		len(v.Bad) <= maxBad,
		"it names %d versions that are not to be proposed, of %d at most",
		len(v.Bad),
		maxBad,
	)
	for _, id := range v.Bad {
		c.version(id)
	}
	c.word("hold", v.Hold)
	c.unless(len(v.Instructions) <= MaxInstructions, "its instructions have %d bytes", len(v.Instructions))
	c.times(v.At, v.Until)
	c.unless(len(v.Asked) <= 100, "it was asked for by %d revisions, of 100 at most", len(v.Asked))
	line(&v.By, &v.Reason)
	lines(v.Asked)
	return c.err
}

// maxBad is how many versions that halted or were undone the fleet remembers.
const maxBad = 2000

// commit checks where one repository is. A repository is named with small letters, digits, dashes and underscores.
func (c *checks) commit(one Commit) {
	c.unless(safetext.Word(one.Repo), "%s is no repository", quoted(one.Repo))
	c.unless(one.Commit != "", "repository %s has no commit", one.Repo)
	c.version(one.Commit)
	c.version(one.Left)
	c.unless(len(one.Tag) <= maxText && !safetext.Obeyed(one.Tag), "the tag %s is not one line", quoted(one.Tag))
}

func (l *Claim) check(k Key) error {
	var c checks
	c.node(l.Node)
	c.version(l.Version)
	c.version(l.Rollout)
	c.times(l.Since)
	for _, group := range l.Groups {
		c.word("group", group)
	}
	line(&l.Release, &l.Step, &l.Reaction)
	if l.Member != nil {
		c.word("role", l.Member.Role)
		c.err = cmp.Or(c.err, safetext.Labels(l.Member.Labels))
	}
	if l.Before != nil {
		c.unless(l.Before.Node == l.Node && l.Before.Before == nil, "before is of another node, or has one before it")
		c.also(l.Before.check(k))
	}
	return c.err
}

func (g *Gate) limit() int { return maxBig }

func (g *Gate) check(Key) error {
	var c checks
	c.unless(g.State == "open" || g.State == Halted, "%s is neither open nor halted", quoted(g.State))
	if g.Node != "" {
		c.node(g.Node)
	}
	c.nodes(g.Failed)
	c.nodes(g.Hosts)
	c.times(g.At)
	line(&g.By, &g.Reason, &g.Resumed, &g.Step, &g.Unknown)
	return c.err
}

func (w *Switch) check(Key) error {
	var c checks
	c.version(w.Version)
	c.times(w.At, w.Until)
	line(&w.Reason, &w.By)
	return c.err
}

func (d *Doubt) check(Key) error {
	var c checks
	c.version(d.Running)
	c.times(d.At)
	line(&d.Reason, &d.Release)
	return c.err
}

func (r *Roster) limit() int { return maxBig }

func (r *Roster) check(k Key) error {
	var c checks
	names := r.Nodes()
	c.nodes(names)
	c.count("size", r.Size, maxNames)
	part := strings.Contains(k.kind.shape, "/part/")
	c.unless(r.Size == len(names) || part && r.Size > len(names), "it names %d nodes, and says %d", len(names), r.Size)
	c.unless(len(r.Roles) <= maxList && len(r.Left) <= maxNames, "it names too many roles or nodes")
	for _, role := range r.Roles {
		c.word("role", role)
	}
	lines(r.Left)
	return c.err
}

func (c *Command) limit() int { return maxBig }

func (c *Command) check(k Key) error {
	var bad checks
	bad.unless(c.ID == k.Word, "it is about another command than its key")
	bad.unless(len(c.Args) <= maxList, "it has %d arguments, of %d at most", len(c.Args), maxList)
	for _, arg := range c.Args {
		bad.unless(!strings.ContainsRune(arg, 0), "an argument has a zero byte")
	}
	bad.unless(len(c.Stages) <= maxList, "it has %d stages, of %d at most", len(c.Stages), maxList)
	bad.nodes(slices.Concat(c.Stages...))
	bad.nodes(c.LeftOut)
	bad.count("max", c.Max, maxNames)
	bad.unless(
		len(c.Limits) == 0 || len(c.Limits) == len(c.Stages),
		"it has %d limits for %d stages",
		len(c.Limits),
		len(c.Stages),
	)
	for _, limit := range c.Limits {
		bad.count("limit", limit, maxNames)
	}
	bad.count("failures", c.MaxFailures, math.MaxInt32)
	bad.unless(c.Timeout >= 0 && c.Timeout < 366*24*time.Hour, "the timeout %s is absurd", c.Timeout)
	bad.times(c.At, c.Until)
	n := len(c.Signature)
	bad.unless(n <= maxSigned, "its signature has %d bytes, of %d at most", n, maxSigned)
	line(&c.Target, &c.Reason, &c.By)
	return bad.err
}

func (r *CommandResult) check(k Key) error {
	var c checks
	if r.Node != k.Node {
		return errOtherNode
	}
	c.unless(
		slices.Contains([]string{"", Running, Ran, Failed, Refused, Unknown}, r.State),
		"%s is no state of a command",
		quoted(r.State),
	)
	c.word("instance", r.Instance)
	c.word("signer", r.Signer)
	c.times(r.Started, r.Ended)
	r.Reason, r.Output = safetext.Text(safetext.Cut(r.Reason, maxText)), safetext.Text(r.Output)
	return c.err
}

func (t *StepStart) check(Key) error {
	var c checks
	c.word("attempt", t.Attempt)
	c.times(t.At)
	c.unless(t.MaxAge >= 0 && t.MaxAge <= 100*365*24*time.Hour, "%v is no age", t.MaxAge)
	line(&t.Step)
	return c.err
}

func (r *StepResult) check(k Key) error {
	var c checks
	if r.Node != k.Node {
		return errOtherNode
	}
	c.unless(
		slices.Contains([]string{"ok", "failed", "unknown", "skipped"}, r.Result),
		"%s is no result",
		quoted(r.Result),
	)
	c.unless(digest(r.Blob), "%s is no digest", quoted(r.Blob))
	c.times(r.At)
	c.word("attempt", r.Attempt)
	line(&r.Step, &r.Reason)
	return c.err
}
