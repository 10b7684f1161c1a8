package rules

import (
	"fmt"
	"strings"
	"time"
)

// jobs assigns the jobs of a version.
const jobs = `jobs:
  'role=edge': [{name: edge}]
  'role=db': [{name: cluster}]
  'role=web': [{name: cluster}]
validations: {'*': [{name: check}]}
`

// Files returns the files of the state repository of a version, by path. Its steps run the scripts that Scripts returns
// for the same directory. The number makes each version differ from the others.
func (r *Rules) Files(dir string, number int) map[string]string {
	cluster := r.steps(dir, Work, Serial, Token, Join, Meet, Behind, Last)
	if r.Bad == badSyntax {
		cluster += "- {name: [}\n"
	}
	check := "true"
	if r.Bad == badValidation {
		check = "test $PULLET_NODE != " + r.BadNode
	}
	check = fmt.Sprintf("steps:\n- {name: check, action: cmd.run, parameters: {cmd: '%s # %d'}}\n", check, number)
	return map[string]string{
		"pullet.yaml": r.rollout(), "nodes/all.yaml": r.inventory(), "base/jobs.yaml": jobs,
		"jobs/edge.yaml": r.steps(dir, Work, Serial, Last), "jobs/cluster.yaml": cluster, "jobs/check.yaml": check,
	}
}

// Scripts returns the programs that steps run, by name. They append to the file log of a directory, in which they are.
func Scripts(dir string) map[string]string {
	return map[string]string{"step": fmt.Sprintf(stepScript, dir), "read": fmt.Sprintf(readScript, dir)}
}

// rollout returns pullet.yaml.
func (r *Rules) rollout() string {
	var b strings.Builder
	rules := []string{fmt.Sprintf("global: %d", r.Limit)}
	if r.Half && !r.Mapped {
		rules = append(rules, "roles: {web: 50%}")
	}
	if r.Total > 0 {
		rules = append(rules, fmt.Sprintf("total: %d", r.Total))
	}
	b.WriteString("rollout:\n  canary: {target: 'canary=true', soak: 1s}\n")
	fmt.Fprintf(&b, "  rollingRules: {%s}\n  onLost: %s\n", strings.Join(rules, ", "), r.OnLost)
	if r.Mapped {
		b.WriteString("  groupMappings: {both: [db, web]}\n")
	} else if r.Depends {
		b.WriteString("  roleDependencies: {web: db}\n")
	}
	if r.Closed { // canaries are not in it: newer commits wait for them
		day := time.Now().UTC().AddDate(0, 0, 3).Weekday().String()
		b.WriteString("  windows: [{from: '03:00', to: '03:01', zone: UTC, roles: [edge, db, web, both], ")
		fmt.Fprintf(&b, "days: %s}]\n", strings.ToLower(day[:3]))
	}
	return b.String()
}

// inventory returns nodes/all.yaml.
func (r *Rules) inventory() string {
	out := "nodes:\n"
	for _, node := range r.nodes() {
		out += fmt.Sprintf("  %s: {labels: {role: %s, canary: '%v'}}\n", node, r.Roles[node], r.Canary[node])
	}
	return out
}

// steps returns a job with these steps. All roles that have the job share its token, in whatever stage they are.
func (r *Rules) steps(dir string, names ...string) string {
	options := map[string]string{
		Serial: fmt.Sprintf("serialize: {count: %d}", r.Serial),
		Token:  "target: {limit: 1, hosts: ['role=db', 'role=web']}",
		Meet:   "sync: true",
	}
	out := "steps:\n"
	for _, name := range names {
		fails := "-"
		if r.Bad == name {
			fails = r.BadNode
		}
		line := fmt.Sprintf("%s/step %s %.2f %s", dir, name, r.StepTime.Seconds(), fails)
		if name == Join {
			line = "%s/read {{ (step `" + Token + "`).StdOut | trim }}; " + line
			line = fmt.Sprintf(line, dir)
		}
		out += fmt.Sprintf("- {name: %s, action: cmd.run, parameters: {cmd: %q}, runOptions: {%s}}\n", name, line,
			options[name])
	}
	return out
}

// stepScript notes its begin and end, and takes its time. readScript notes the result that it read.
const (
	stepScript = `#!/bin/sh
# step NAME SECONDS NODE: fails on that node
say() {
  host=$(basename "$(dirname "$PULLET_ROOT")")
  echo "$1 $PULLET_NODE $host ${PULLET_VERSION:--} $2 ${PULLET_FENCE:-0} $$ $3" >> %[1]s/log
}
say begin "$1"
[ "$1" = token ] && echo "$PULLET_NODE-$$"
sleep "$2"
code=0
[ "$3" = "$PULLET_NODE" ] && code=1
say end "$1" $code
exit $code
`
	readScript = `#!/bin/sh
# read VALUE
echo "value $PULLET_NODE $PULLET_VERSION $*" >> %[1]s/log
`
)
