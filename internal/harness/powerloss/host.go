// Package powerloss runs pullet on disks that record their writes, and cuts their power. Tests only.
package powerloss

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

// FileSystems returns the kinds of file systems that Run knows.
func FileSystems() []string { return []string{"ext4", "xfs", "btrfs"} }

// Run records the disks of a host during two pulls of a program, pullet, and cuts the power at random moments of each.
// The host has two disks with a file system of a kind: one for its files and one for the state directory. After a cut
// everything that was flushed is on the disks, and chance decides for each sector that was not. Run fails the test
// unless each managed file is whole then and the next pull succeeds, without running a command again that a later one
// followed. A cut after the end of a pull may lose nothing. Run skips the test where it cannot mount such disks.
func Run(t testing.TB, kind, program string, chance *rand.Rand, cuts int) {
	t.Helper()
	newHost(t, kind, program).cuts(chance, cuts)
}

// groupSize is the number of managed files in each of the two groups.
const groupSize = 60

// job has two groups of files, each in two halves: the second half requires the first. A command that watches a file
// and another command follow each group. A file is larger than a sector.
const job = `steps:
- {name: dir, action: file.directory, parameters: {name: /etc/app}}
{{- range $group := list "a" "b" }}
{{- range $i := until %[1]d }}
- name: file {{ $group }}{{ $i }}
  action: file.managed
  {{- if eq $i 30 }}
  require: [file {{ $group }}29]
  {{- end }}
  parameters:
    name: "/etc/app/{{ $group }}{{ $i }}"
    content: '%[2]s {{ repeat 2000 (printf "%%s%%d " $group $i) }} %[2]s end'
{{- end }}
- name: reload {{ $group }}
  action: cmd.run
  parameters:
    cmd: 'echo "saw {{ $group }} $(head -c 2 "$PULLET_ROOT/etc/app/{{ $group }}0")" > %[3]s'
    onchanges: ["file {{ $group }}0"]
- name: after {{ $group }}
  action: cmd.run
  parameters: {cmd: 'echo "after {{ $group }}" > %[3]s'}
{{- end }}
`

// host is a host whose disks are recorded.
type host struct {
	t        testing.TB
	kind     string // of its file systems
	recorder *recorder
	dir      string // of the test
	program  string // pullet
}

// diskNames returns the names of the disks of a host, and of the directories in which they are mounted.
func diskNames() []string { return []string{"root", "state"} }

// config is the configuration of a host.
const config = `node: {name: web1}
repositories: [{name: main, url: %q, ref: main}]
paths: {state: %q, hostVars: %q}
`

// newHost makes the disks and the configuration of a host.
func newHost(t testing.TB, kind, program string) *host {
	t.Helper()
	tier.Root(t, "mounts file systems")
	h := &host{t: t, kind: kind, program: program, dir: t.TempDir(), recorder: &recorder{disks: map[string]*disk{}}}
	image, served := filepath.Join(h.dir, "image"), filepath.Join(h.dir, "served")
	runTool(t, "truncate", "-s", "512M", image)
	runTool(t, "mkfs."+kind, "-q", image)
	for _, dir := range append(diskNames(), "served") {
		if err := os.Mkdir(filepath.Join(h.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", image, h.at("root")).CombinedOutput(); err != nil {
		t.Skipf("needs loop devices and %s: %v\n%s", kind, err, out)
	}
	runTool(t, "umount", h.at("root"))
	for _, disk := range diskNames() {
		// Each file system has its own ID.
		runTool(t, "mkfs."+kind, "-q", map[string]string{"btrfs": "-f", "xfs": "-f", "ext4": "-F"}[kind], image)
		h.recorder.disks[disk] = loadDisk(t, image)
	}
	h.recorder.serve(t, served)
	repo, state := filepath.Join(h.dir, "repo"), filepath.Join(h.at("state"), "pullet")
	h.write("pullet.yaml", fmt.Sprintf(config, repo, state, filepath.Join(h.dir, "vars.d")))
	return h
}

// at returns the directory in which a disk is mounted.
func (h *host) at(disk string) string { return filepath.Join(h.dir, disk) }

// mount mounts the images in a directory, and returns a function that unmounts them.
func (h *host) mount(images string) (unmount func()) {
	h.t.Helper()
	var all []func()
	for _, disk := range diskNames() {
		all = append(all, mountImage(h.t, h.kind, filepath.Join(images, disk), h.at(disk)))
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// write writes a file of the test.
func (h *host) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// commit commits a version whose files begin and end with a word.
func (h *host) commit(word string) {
	h.t.Helper()
	h.write("repo/base/jobs.yaml", "jobs: {'*': [{name: a}]}\n")
	h.write("repo/jobs/a.yaml", fmt.Sprintf(job, groupSize, word, filepath.Join(h.dir, "served", "mark")))
	repo := filepath.Join(h.dir, "repo")
	runTool(h.t, "git", "init", "-q", "-b", "main", repo)
	runTool(h.t, "git", "-C", repo, "add", "-A")
	runTool(h.t, "git", "-C", repo, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-qm", word)
}

// runTool runs a program, which has to succeed.
func runTool(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// pull pulls on the host.
func (h *host) pull() error {
	cmd := exec.Command(h.program, "pull", "--config", filepath.Join(h.dir, "pullet.yaml"), "--root", h.at("root"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, &out)
	}
	return nil
}

// versions counts the managed files by version. "none" is a missing file, and any text other than a version is damage.
func (h *host) versions() map[string]int {
	out := map[string]int{}
	for _, group := range []string{"a", "b"} {
		for i := range groupSize {
			out[h.version(fmt.Sprint(group, i))]++
		}
	}
	return out
}

// version returns the version of a managed file.
func (h *host) version(name string) string {
	text, err := os.ReadFile(filepath.Join(h.at("root"), "etc/app", name))
	if os.IsNotExist(err) {
		return "none"
	}
	for _, word := range []string{"v1", "v2"} {
		if string(text) == word+" "+strings.Repeat(name+" ", 2000)+" "+word+" end" {
			return word
		}
	}
	return fmt.Sprintf("%s: damaged: %d bytes: %.20q %v", name, len(text), text, err)
}

// cuts records the first pull of a host and the pull of its next version, and cuts the power during and after each.
func (h *host) cuts(chance *rand.Rand, times int) {
	before := "none"
	for _, word := range []string{"v1", "v2"} {
		h.commit(word)
		h.recorder.restart()
		was := h.recorder.copies()
		unmount := h.mount(filepath.Join(h.dir, "served"))
		if err := h.pull(); err != nil {
			h.t.Fatal(err)
		}
		events, after := h.recorder.events(), h.recorder.copies()
		if got := h.versions(); got[word] != 2*groupSize {
			h.t.Fatalf("the files are %v", got)
		}
		unmount()
		h.t.Logf("%s: %d events", word, len(events))
		for range times {
			h.cut(was, events[:chance.IntN(len(events))], chance, before, word)
		}
		h.cut(was, events, chance, word, word)
		h.recorder.restore(after)
		before = word
	}
}

// cut checks the host after a power loss that follows these events, and the next pull.
func (h *host) cut(was map[string]*disk, events []diskEvent, chance *rand.Rand, old, word string) {
	h.t.Helper()
	// The files are new: a loop device that still has the last ones would be used again, with its cache.
	images, err := os.MkdirTemp(h.dir, "lost")
	if err != nil {
		h.t.Fatal(err)
	}
	for disk, of := range h.recorder.disks {
		was[disk].losePower(events, of, chance).save(h.t, filepath.Join(images, disk))
	}
	defer h.mount(images)()
	for version, n := range h.versions() {
		if version != old && version != word {
			h.t.Errorf("cut behind event %d: %d files: %s; want %s or %s", len(events), n, version, old, word)
		}
	}
	h.recorder.restart()
	if err := h.pull(); err != nil {
		h.t.Errorf("cut behind event %d: the next pull: %v", len(events), err)
		return
	}
	if got := h.versions(); got[word] != 2*groupSize {
		h.t.Errorf("cut behind event %d: after the next pull the files are %v", len(events), got)
	}
	if left, err := filepath.Glob(filepath.Join(h.at("root"), "etc/app/.*")); len(left) > 0 || err != nil {
		h.t.Errorf("cut behind event %d: the next pull left %q %v", len(events), left, err)
	}
	h.judge(len(events), marks(events), marks(h.recorder.events()), word)
}

// judge compares the marks of the pull before a power loss with those of the next one.
func (h *host) judge(at int, first, second []string, word string) {
	h.t.Helper()
	order := []string{"saw a " + word, "after a", "saw b " + word, "after b"}
	for i, mark := range order {
		later := slices.ContainsFunc(order[i+1:], func(next string) bool { return slices.Contains(first, next) })
		if later && slices.Contains(second, mark) {
			h.t.Errorf("cut behind event %d: %q ran again although a later command had begun: %q, then %q", at, mark, first,
				second)
		}
		if !slices.Contains(first, mark) && !slices.Contains(second, mark) {
			h.t.Errorf("cut behind event %d: %q never ran: %q, then %q", at, mark, first, second)
		}
	}
}

// marks returns the marks of commands in their order.
func marks(events []diskEvent) []string {
	var out []string
	for _, e := range events {
		if e.mark != "" {
			out = append(out, e.mark)
		}
	}
	return out
}
