package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// repositoryName is the only state repository of a fleet.
const repositoryName = "main"

// commit names the n-th commit of a fleet's repository. Later ones sort behind earlier ones.
func commit(n int) string { return fmt.Sprintf("%040x", n) }

// newer reports that a release is behind another in the repository's history.
func newer(a, b string) bool { return a > b }

// repositories are the fleet's repository as a host's pulls see it: agent.Repositories without git.
type repositories struct {
	p *process
}

func (r repositories) at(id string) puller.Head { return puller.Head{Repo: repositoryName, Commit: id} }

func (r repositories) Pull(context.Context) ([]puller.Head, error) {
	return []puller.Head{r.at(r.p.fleet.head().id)}, nil
}

func (r repositories) Relate(_ context.Context, from, to puller.Head) (puller.Relation, error) {
	switch {
	case from.Commit == to.Commit:
		return puller.Same, nil
	case newer(to.Commit, from.Commit):
		return puller.Newer, nil
	}
	return puller.Older, nil
}

func (r repositories) Follow(string) string { return "branch main" }

func (r repositories) Follows(_ context.Context, _, h puller.Head) (puller.Head, bool, error) {
	return h, r.p.fleet.find(h.Commit) != nil, nil
}

func (r repositories) Resolve(_ context.Context, _, rev string) (puller.Head, error) {
	return r.at(rev), nil
}

func (r repositories) Describe(context.Context, puller.Head) (subject, author string, err error) {
	return "", "", nil
}

func (r repositories) Accept(context.Context, string, string, string) error { return nil }

func (r repositories) Close() error { return nil }

func (r repositories) Snapshot(_ context.Context, heads []puller.Head) (*puller.Snapshot, error) {
	files := r.p.fleet.find(heads[0].Commit).files(r.p.fleet)
	return &puller.Snapshot{Layers: []puller.Layer{{Name: repositoryName, FS: files}}}, nil
}

// files are a release as its commit has them.
func (r *release) files(f *fleet) fstest.MapFS {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.tree != nil {
		return r.tree
	}
	r.tree = fstest.MapFS{}
	for name, text := range map[string]string{
		"pullet.yaml": r.rollout(f), "nodes/all.yaml": r.inventory(f), "base/jobs.yaml": r.jobs(f),
	} {
		r.tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	for job, steps := range r.byJob() {
		r.tree["jobs/"+job+".yaml"] = &fstest.MapFile{Data: []byte(steps), Mode: 0o644}
	}
	return r.tree
}

func (r *release) inventory(f *fleet) string {
	var out strings.Builder
	out.WriteString("nodes:\n")
	for _, h := range f.hosts {
		fmt.Fprintf(&out, "  %s: {labels: {role: %s, canary: '%t'}}\n", h.name, r.role(h.name, h.role), r.group(h.name, h.role) == canaries)
	}
	return out.String()
}

// rollout is pullet.yaml.
func (r *release) rollout(f *fleet) string {
	var out strings.Builder
	fmt.Fprintf(&out, "rollout:\n  maxFailures: %d\n  maxHostFailures: %d\n  onLost: %s\n  progressDeadline: %s\n", r.failing, r.faulty, r.onLost, r.within)
	fmt.Fprintf(&out, "  rollingRules:\n    total: %d\n    roles: {", r.total)
	for _, group := range slices.Concat(f.roles, []string{canaries, front}) {
		n, set := r.limits[group]
		if known := f.has(r, group) || group == canaries && r.canary || group == front && r.front != nil; !set || !known {
			continue
		}
		if n < 0 {
			fmt.Fprintf(&out, "%s: %d%%, ", group, -n)
		} else {
			fmt.Fprintf(&out, "%s: %d, ", group, n)
		}
	}
	out.WriteString("}\n")
	if r.canary {
		fmt.Fprintf(&out, "  canary: {target: canary=true, soak: %s}\n", r.soak)
	}
	if r.front != nil {
		fmt.Fprintf(&out, "  groupMappings: {%s: [%s]}\n", front, strings.Join(r.front, ", "))
	}
	out.WriteString("  roleDependencies: {")
	for _, role := range f.roles {
		if first := r.depends[role]; first != nil {
			fmt.Fprintf(&out, "%s: [%s], ", role, first[0])
		}
	}
	out.WriteString("}\n")
	return out.String()
}

// job is the job of a step: that of its role, or of all.
func (s *task) job() string {
	job, _, _ := strings.Cut(s.name, "/")
	return job
}

// jobs is base/jobs.yaml.
func (r *release) jobs(f *fleet) string {
	var out strings.Builder
	out.WriteString("jobs:\n")
	has := func(job string) bool {
		return slices.ContainsFunc(r.steps, func(s *task) bool { return s.job() == job })
	}
	for _, role := range f.roles {
		var of []string
		for _, job := range []string{role + "-apart", role} {
			if has(job) {
				of = append(of, "{name: "+job+"}")
			}
		}
		if of != nil {
			fmt.Fprintf(&out, "  role=%s: [%s]\n", role, strings.Join(of, ", "))
		}
	}
	everywhere := ""
	if has("all") {
		everywhere = "{name: all}"
	}
	fmt.Fprintf(&out, "  '*': [%s]\n", everywhere)
	return out.String()
}

// byJob are the texts of the jobs' files. A step requires the one that comes before it on its hosts.
func (r *release) byJob() map[string]string {
	out, last := map[string]string{}, map[string]string{} // by role
	for _, s := range r.steps {
		job, name, _ := strings.Cut(s.name, "/")
		if out[job] == "" {
			out[job] = "steps:\n"
		}
		before := ""
		for _, role := range s.roles {
			if last[role] != "" {
				before += fmt.Sprintf("{{ if eq server.labels.role %q }}{step: %s}{{ end }}", role, last[role])
			}
			if !s.apart {
				last[role] = s.name
			}
		}
		out[job] += s.text(name, before)
	}
	return out
}

func (s *task) text(name, before string) string {
	out := fmt.Sprintf("  - name: %s\n    action: simulation.command\n    parameters: {name: %s", name, s.name)
	if s.reads != nil {
		_, of, _ := strings.Cut(s.reads.name, "/")
		out += fmt.Sprintf(`, reads: '{{ (step %q).ByNode | toJson }}'`, of)
	}
	out += "}\n"
	if before != "" {
		out += fmt.Sprintf("    require: [%s]\n", before)
	}
	out += fmt.Sprintf("    runOptions:\n      idempotent: %t\n      sync: %t\n", s.repeatable, s.sync)
	if s.once {
		out += "      runs: once\n"
	}
	if s.serialize > 0 {
		out += fmt.Sprintf("      serialize: {count: %d, failAfterAllTargetsRan: %t}\n", s.serialize, s.late)
	}
	if s.target > 0 {
		maxAge := ""
		if s.maxAge > 0 {
			maxAge = fmt.Sprintf(", maxAge: %s", s.maxAge)
		}
		out += fmt.Sprintf("      target: {limit: %d%s}\n", s.target, maxAge)
	}
	return out
}

// step is one of the release's by its name.
func (r *release) step(name string) *task {
	at := slices.IndexFunc(r.steps, func(s *task) bool { return s.name == name })
	if at < 0 {
		return nil
	}
	return r.steps[at]
}

// commits is a version's commit as the fleet's record has it.
func commits(id string) []state.Commit { return []state.Commit{{Repo: repositoryName, Commit: id}} }
