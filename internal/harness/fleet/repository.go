package fleet

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/harness/history"
)

// repository is the state repository of a fleet.
type repository struct {
	t        testing.TB
	dir      string // of the fleet
	versions []history.Version
}

// groupLimit and totalLimit are the numbers of nodes that may change at a time: of a group, and of the fleet.
const groupLimit, totalLimit = 2, 3

// rulesFile is pullet.yaml.
const rulesFile = `config: {%s}
rollout:
  rollingRules: {global: %d, total: %d}
  roleDependencies: {web: db}
  canary: {target: 'canary=true', soak: 1s}
  onLost: %s
`

// write writes a file below the directory of the fleet.
func (r *repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// git runs git in the repository, and returns its output.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(r.dir, "repo"), "-c", "user.name=t", "-c",
		"user.email=t@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newRepository makes a state repository without a version, for nodes with these roles. If there are carriers, which
// are hosts that may carry the datastore, the fleet keeps its own.
func newRepository(t testing.TB, dir, onLost string, roles map[string]string, carriers []string) *repository {
	t.Helper()
	r := &repository{t: t, dir: dir}
	nodes, config := "nodes:\n", ""
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		nodes += fmt.Sprintf("  %s: {labels: {role: %s, canary: '%v', disk: '%v'}}\n", name, roles[name],
			roles[name] == "can", slices.Contains(carriers, name))
	}
	if len(carriers) > 0 {
		config = fmt.Sprintf("dataStore: {type: etcd, count: %d, eligible: disk=true, replaceAfter: %s}", datastoreMembers,
			datastoreReplace)
	}
	r.write("repo/nodes/all.yaml", nodes)
	r.write("repo/pullet.yaml", fmt.Sprintf(rulesFile, config, groupLimit, totalLimit, onLost))
	r.write("repo/base/jobs.yaml", baseJobs)
	r.git("init", "-q", "-b", "main")
	return r
}

// baseJobs assigns the jobs of all versions.
const baseJobs = `jobs:
  '*': [{name: site}]
  'role=db': [{name: cluster}]
  'role=web': [{name: cluster}]
validations: {'*': [{name: check}]}
`

// logged returns a command that notes in the ledger of the node when it starts and ends.
func logged(step, do string) string {
	note := `echo "%s ` + step + ` $PULLET_NODE $PULLET_VERSION ${PULLET_FENCE:-0} $(date +%%s%%N)" >> ledger`
	return fmt.Sprintf(note, "start") + "; " + do + "; r=$?; " + fmt.Sprintf(note, "end") + "; exit $r"
}

// siteJob is the job of all nodes.
const siteJob = `steps:
- {name: version, action: file.managed, parameters: {name: /etc/version, content: "%d\n"}}
- {name: work, action: cmd.run, parameters: {cmd: %q}}
- {name: restart, action: cmd.run, parameters: {cmd: %q}, runOptions: {serialize: {count: 1}}}
`

// clusterJob is the job of db and web.
const clusterJob = `steps:
- {name: token, action: cmd.run, parameters: {cmd: %q}, runOptions: {target: {hosts: role=db}}}
- {name: join, action: cmd.run, parameters: {cmd: %q}}
- {name: meet, action: cmd.run, parameters: {cmd: %q}, runOptions: {sync: true}}
- {name: behind, action: cmd.run, parameters: {cmd: %q}}
`

// release commits a version. A bad one fails on a node: "work" in a step, "restart" in a serialized step, "validation"
// in a validation. "syntax" does not compile.
func (r *repository) release(bad, node string) {
	fails := func(kind string) string {
		if bad != kind {
			return "sleep 0.1"
		}
		return "test $PULLET_NODE != " + node
	}
	number := len(r.versions) + 1
	site := fmt.Sprintf(siteJob, number, logged("work", fails("work")), logged("restart", fails("restart")))
	if bad == "syntax" {
		site += "- {name: [}\n"
	}
	r.write("repo/jobs/site.yaml", site)
	r.write("repo/jobs/cluster.yaml", fmt.Sprintf(clusterJob, logged("token", "sleep 0.1; echo $PULLET_NODE-$$"),
		logged("join", "echo {{ (step `token`).StdOut | trim }} > etc/token"), logged("meet", "true"),
		logged("behind", "sleep 0.05")))
	r.write("repo/jobs/check.yaml", fmt.Sprintf("steps:\n- {name: version, action: cmd.run, parameters: {cmd: %q}}\n",
		"grep -qx "+strconv.Itoa(number)+" etc/version && "+fails("validation")))
	r.git("add", "-A")
	r.git("commit", "-qm", fmt.Sprint("version ", number))
	what := bad
	if bad != "" {
		what += " on " + node
	}
	r.versions = append(r.versions, history.Version{ID: r.git("rev-parse", "HEAD"), Bad: what})
}
