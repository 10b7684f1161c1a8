package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stormRules are what a storm's pullet.yaml and nodes/ say. They change from version to version.
type stormRules struct {
	roles   map[string]string // of nodes
	canary  map[string]bool   // nodes that go first
	global  int               // nodes of a group at a time
	half    bool              // of web half may change at a time
	total   int               // of all groups; 0 is any number
	mapped  bool              // db and web take turns as one
	depends bool              // web comes after db
	serial  int
	closed  bool          // no maintenance window opens for days
	bad     string        // a step that fails, or "syntax"
	on      string        // at this node
	lasts   time.Duration // a step
	onLost  string
}

// stormGroup is the group in which a node takes turns.
func (r *stormRules) group(node string) string {
	role := r.roles[node]
	switch {
	case r.canary[node]:
		return "canary"
	case r.mapped && (role == "db" || role == "web"):
		return "both"
	}
	return role
}

func (r *stormRules) nodes() []string { return slices.Sorted(maps.Keys(r.roles)) }

// sized is how many nodes have a role.
func (r *stormRules) sized(role string) (n int) {
	for _, one := range r.roles {
		if one == role {
			n++
		}
	}
	return n
}

// version is what the rules mean for the judge.
func (r *stormRules) version(number int, id string) *stormVersion {
	v := &stormVersion{Number: number, ID: id, Groups: map[string]string{}, Roles: r.roles, Limits: map[string]int{}, Total: r.total, Depends: map[string][]string{},
		Serial: r.serial, Meet: map[string]string{}, Closed: r.closed, Bad: r.bad, OnLost: r.onLost}
	sizes := map[string]int{}
	for _, node := range r.nodes() {
		group := r.group(node)
		v.Groups[node] = group
		sizes[group]++
		if v.Limits[group] = r.global; group == "web" && r.half {
			v.Limits[group] = max(1, sizes[group]/2)
		}
		if group != "canary" {
			v.Depends[group] = []string{"canary"}
		}
		if r.roles[node] != "edge" {
			v.Meet[node] = "others"
			if group == "canary" || group == "web" && r.depends {
				v.Meet[node] = group
			}
		}
	}
	if r.depends && !r.mapped && v.Depends["web"] != nil {
		v.Depends["web"] = append(v.Depends["web"], "db")
	}
	if len(sizes) > 0 && sizes["canary"] == 0 {
		for group := range v.Depends {
			v.Depends[group] = slices.DeleteFunc(v.Depends[group], func(g string) bool { return g == "canary" })
		}
	}
	return v
}

// rollout is the fleet's pullet.yaml.
func (r *stormRules) rollout() string {
	var b strings.Builder
	rules := []string{fmt.Sprintf("global: %d", r.global)}
	if r.half && !r.mapped {
		rules = append(rules, "roles: {web: 50%}")
	}
	if r.total > 0 {
		rules = append(rules, fmt.Sprintf("total: %d", r.total))
	}
	fmt.Fprintf(&b, "rollout:\n  rollingRules: {%s}\n  onLost: %s\n  canary: {target: 'canary=true', soak: 1s}\n", strings.Join(rules, ", "), r.onLost)
	if r.mapped {
		b.WriteString("  groupMappings: {both: [db, web]}\n")
	} else if r.depends {
		b.WriteString("  roleDependencies: {web: db}\n")
	}
	if r.closed { // for all but the canaries: newer commits wait for those
		day := time.Now().UTC().AddDate(0, 0, 3).Weekday().String()
		fmt.Fprintf(&b, "  windows: [{days: %s, from: '03:00', to: '03:01', zone: UTC, roles: [edge, db, web, both]}]\n", strings.ToLower(day[:3]))
	}
	return b.String()
}

// inventory is the fleet's nodes/all.yaml.
func (r *stormRules) inventory() string {
	out := "nodes:\n"
	for _, node := range r.nodes() {
		out += fmt.Sprintf("  %s: {labels: {role: %s, canary: '%v'}}\n", node, r.roles[node], r.canary[node])
	}
	return out
}

// stormSteps are the steps of a job. A token is shared by all roles that have the job, in whatever stage.
func (s *storm) steps(r *stormRules, names ...string) string {
	options := map[string]string{
		stormSerial: fmt.Sprintf("serialize: {count: %d}", r.serial),
		stormToken:  "target: {limit: 1, hosts: ['role=db', 'role=web']}",
		stormMeet:   "sync: true",
	}
	out := "steps:\n"
	for _, name := range names {
		fails := "-"
		if r.bad == name {
			fails = r.on
		}
		line := fmt.Sprintf("%s/step %s %.2f %s", s.dir, name, r.lasts.Seconds(), fails)
		if name == stormJoin {
			line = "%s/read {{ (step `" + stormToken + "`).StdOut | trim }}; " + line
			line = fmt.Sprintf(line, s.dir)
		}
		out += fmt.Sprintf("- {name: %s, action: cmd.run, parameters: {cmd: %q}, runOptions: {%s}}\n", name, line, options[name])
	}
	return out
}

// stormStep appends to the log, and takes its time. stormRead says what was read of another node's step.
const (
	stormStep = `#!/bin/sh
# step NAME SECONDS NODE: fails on that node
say() { echo "$1 $PULLET_NODE $(basename "$(dirname "$PULLET_ROOT")") ${PULLET_VERSION:--} $2 ${PULLET_FENCE:-0} $$ $3" >> %[1]s/log; }
say begin "$1"
[ "$1" = token ] && echo "$PULLET_NODE-$$"
sleep "$2"
code=0
[ "$3" = "$PULLET_NODE" ] && code=1
say end "$1" $code
exit $code
`
	stormRead = `#!/bin/sh
# read VALUE
echo "value $PULLET_NODE $PULLET_VERSION $*" >> %[1]s/log
`
)

// prepare makes the repository, from which nodes pull, and where its commits are made.
func (s *storm) prepare() {
	for name, text := range map[string]string{"step": stormStep, "read": stormRead} {
		s.write(name, fmt.Sprintf(text, s.dir))
		if err := os.Chmod(filepath.Join(s.dir, name), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, repo := range s.repos {
		s.git(".", "init", "-q", "--bare", "-b", "main", repo+".git")
		s.git(".", "init", "-q", "-b", "main", repo)
		s.git(repo, "remote", "add", "origin", filepath.Join(s.dir, repo+".git"))
	}
	if len(s.repos) > 1 { // the second one has variables only: each of its commits is a version of the fleet
		s.write("extra/base/vars.yaml", "files: {'*': [{name: extra}]}\n")
		s.pushExtra(0)
	}
}

// pushExtra commits to the second repository.
func (s *storm) pushExtra(number int) {
	s.write("extra/vars/extra.yaml", fmt.Sprintf("extra: %d\n", number))
	s.git("extra", "add", "-A")
	s.git("extra", "commit", "-qm", fmt.Sprint("variables ", number))
	s.git("extra", "push", "-q", "origin", "HEAD:main")
}

// push commits the rules, tells the judge, and pushes. A rewrite takes the place of the last commit.
func (s *storm) push(r *stormRules, rewrite bool) string {
	s.pushing.Lock()
	defer s.pushing.Unlock()
	s.number++
	s.write("main/pullet.yaml", r.rollout())
	s.write("main/nodes/all.yaml", r.inventory())
	s.write("main/base/jobs.yaml", "jobs:\n  'role=edge': [{name: edge}]\n  'role=db': [{name: cluster}]\n  'role=web': [{name: cluster}]\nvalidations: {'*': [{name: check}]}\n")
	s.write("main/jobs/edge.yaml", s.steps(r, stormWork, stormSerial, stormLast))
	cluster := s.steps(r, stormWork, stormSerial, stormToken, stormJoin, stormMeet, stormBehind, stormLast)
	if r.bad == "syntax" {
		cluster += "- {name: [}\n"
	}
	s.write("main/jobs/cluster.yaml", cluster)
	check := "true"
	if r.bad == "validation" {
		check = "test $PULLET_NODE != " + r.on
	}
	s.write("main/jobs/check.yaml", fmt.Sprintf("steps:\n- {name: check, action: cmd.run, parameters: {cmd: '%s # %d'}}\n", check, s.number))
	s.git("main", "add", "-A")
	commit := []string{"commit", "-qm", fmt.Sprint("version ", s.number)}
	if rewrite {
		commit = append(commit, "--amend")
	}
	s.git("main", commit...)
	id := s.git("main", "rev-parse", "HEAD")
	text, err := json.Marshal(r.version(s.number, id))
	if err != nil {
		s.t.Fatal(err)
	}
	s.log.say("version %s", text)
	s.git("main", "push", "-qf", "origin", "HEAD:main")
	return id
}

func (s *storm) write(name, text string) {
	path := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		s.t.Error(err) // faults call it beside the test
	}
}

func (s *storm) git(repo string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(s.dir, repo), "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// firstRules are those of a storm's first version.
func firstRules(hosts []*stormHost, onLost string) *stormRules {
	r := &stormRules{roles: map[string]string{}, canary: map[string]bool{}, global: 1, total: 3, depends: true, serial: 1, lasts: 150 * time.Millisecond, onLost: onLost}
	for _, h := range hosts {
		r.roles[h.node] = h.role
	}
	r.canary["edge1"] = true
	return r
}

// change draws the rules of the next version.
func (r *stormRules) change(x *rand.Rand) *stormRules {
	next := *r
	next.roles, next.canary = maps.Clone(r.roles), maps.Clone(r.canary)
	next.bad, next.on, next.closed = "", "", false
	nodes := next.nodes()
	some := func() string { return nodes[x.IntN(len(nodes))] }
	if x.IntN(3) == 0 {
		node := some()
		next.canary[node] = !next.canary[node]
	}
	if node := some(); x.IntN(5) == 0 && next.roles[node] != "edge" && next.sized(next.roles[node]) > 1 { // the rules name each role
		next.roles[node] = map[string]string{"db": "web", "web": "db"}[next.roles[node]]
	}
	if x.IntN(4) == 0 {
		next.total = []int{0, 2, 3}[x.IntN(3)]
	}
	if x.IntN(5) == 0 {
		next.mapped = !next.mapped
	}
	if x.IntN(4) == 0 {
		next.depends = !next.depends
	}
	if x.IntN(4) == 0 {
		next.global, next.half = 1+x.IntN(2), x.IntN(2) == 0
	}
	if x.IntN(4) == 0 {
		next.serial = 1 + x.IntN(2)
	}
	next.lasts = time.Duration(50+x.IntN(700)) * time.Millisecond
	if x.IntN(5) == 0 {
		next.bad, next.on = []string{stormWork, stormSerial, stormBehind, stormLast, "validation", "syntax"}[x.IntN(6)], some()
	} else {
		next.closed = x.IntN(12) == 0
	}
	return &next
}

// fix makes the rules ones that every node can come through with.
func (r *stormRules) fix() *stormRules {
	next := *r
	next.bad, next.on, next.closed, next.lasts = "", "", false, 100*time.Millisecond
	return &next
}
