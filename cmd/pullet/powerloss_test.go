package main

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
	"time"
)

// TestPowerLoss: a pull writes to file systems on disks that record every write and every flush of their cache, one for
// the host's files and one for the state directory. The power is cut at random moments: what was flushed is there, and
// of the rest each sector by chance. After each cut every managed file is whole, the next pull brings the host to the
// same end, no command runs again that a later one followed, and what watches a file has seen it as it is now. At the
// end of a pull nothing is lost.
func TestPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			l := newLostHost(t, kind)
			l.cuts(rand.New(rand.NewPCG(seed, 0)), 12)
		})
	}
}

// lossFiles is how many files the host of TestPowerLoss has, in each of its two groups.
const lossFiles = 60

// lossJob is a job with two times two groups of files: the second requires the first. Then come a command that watches
// a file and a command behind it. A file is larger than a sector.
const lossJob = `steps:
- {name: dir, action: file.directory, parameters: {name: /etc/app}}
{{- range $group := list "a" "b" }}
{{- range $i := until %[1]d }}
- name: file {{ $group }}{{ $i }}
  action: file.managed
  {{- if eq $i 30 }}
  require: [file {{ $group }}29]
  {{- end }}
  parameters: {name: "/etc/app/{{ $group }}{{ $i }}", content: '%[2]s {{ repeat 2000 (printf "%%s%%d " $group $i) }} %[2]s end'}
{{- end }}
- name: reload {{ $group }}
  action: cmd.run
  parameters: {cmd: 'echo "saw {{ $group }} $(head -c 2 "$PULLET_ROOT/etc/app/{{ $group }}0")" > %[3]s', onchanges: ["file {{ $group }}0"]}
- name: after {{ $group }}
  action: cmd.run
  parameters: {cmd: 'echo "after {{ $group }}" > %[3]s'}
{{- end }}
`

// lostHost is a host on a disk that is recorded.
type lostHost struct {
	t        *testing.T
	kind     string // of its file systems
	recorder *recorder
	dir      string // of the test
}

// lostDisks are the disks of a host, and where they are mounted: two file systems that become durable apart from each
// other.
func lostDisks() []string { return []string{"root", "state"} }

func newLostHost(t *testing.T, kind string) *lostHost {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts file systems")
	}
	if _, err := exec.LookPath("mkfs." + kind); err != nil {
		t.Skip(err)
	}
	l := &lostHost{t: t, kind: kind, dir: t.TempDir(), recorder: &recorder{disks: map[string]*recordedDisk{}}}
	image, served := filepath.Join(l.dir, "image"), filepath.Join(l.dir, "served")
	runTool(t, "truncate", "-s", "512M", image)
	runTool(t, "mkfs."+kind, "-q", image)
	for _, dir := range append(lostDisks(), "served") {
		if err := os.Mkdir(filepath.Join(l.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", image, l.at("root")).CombinedOutput(); err != nil {
		t.Skipf("needs loop devices and %s: %v\n%s", kind, err, out)
	}
	runTool(t, "umount", l.at("root"))
	for _, disk := range lostDisks() {
		runTool(t, "mkfs."+kind, "-q", map[string]string{"btrfs": "-f", "xfs": "-f", "ext4": "-F"}[kind], image) // each with an id of its own
		l.recorder.disks[disk] = loadDisk(t, image)
	}
	l.recorder.serve(t, served)
	if err := os.Symlink(self(t), filepath.Join(l.dir, "pullet")); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("node: {name: web1}\nrepositories: [{name: main, url: %q, ref: main}]\npaths: {state: %q, hostVars: %q}\n",
		filepath.Join(l.dir, "repo"), filepath.Join(l.at("state"), "pullet"), filepath.Join(l.dir, "vars.d"))
	l.write("pullet.yaml", config)
	return l
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (l *lostHost) at(disk string) string { return filepath.Join(l.dir, disk) }

// mount mounts the images of a directory, and returns how to unmount them.
func (l *lostHost) mount(images string) (unmount func()) {
	l.t.Helper()
	var all []func()
	for _, disk := range lostDisks() {
		all = append(all, mountImage(l.t, l.kind, filepath.Join(images, disk), l.at(disk)))
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

func (l *lostHost) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// commit is a version whose files begin and end with a word.
func (l *lostHost) commit(word string) {
	l.t.Helper()
	l.write("repo/base/jobs.yaml", "jobs: {'*': [{name: a}]}\n")
	l.write("repo/jobs/a.yaml", fmt.Sprintf(lossJob, lossFiles, word, filepath.Join(l.dir, "served", "mark")))
	repo := filepath.Join(l.dir, "repo")
	runTool(l.t, "git", "init", "-q", "-b", "main", repo)
	runTool(l.t, "git", "-C", repo, "add", "-A")
	runTool(l.t, "git", "-C", repo, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-qm", word)
}

func runTool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

func (l *lostHost) pull() error {
	cmd := exec.Command(filepath.Join(l.dir, "pullet"), "pull", "--config", filepath.Join(l.dir, "pullet.yaml"), "--root", l.at("root"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, &out)
	}
	return nil
}

// versions counts the managed files by the version that they have: "none" is not there, anything else is damage.
func (l *lostHost) versions() map[string]int {
	out := map[string]int{}
	for _, group := range []string{"a", "b"} {
		for i := range lossFiles {
			out[l.version(fmt.Sprint(group, i))]++
		}
	}
	return out
}

func (l *lostHost) version(name string) string {
	text, err := os.ReadFile(filepath.Join(l.at("root"), "etc/app", name))
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

// cuts records the first pull of a host and the pull of its next version, and cuts the power in each of them.
func (l *lostHost) cuts(chance *rand.Rand, times int) {
	before := "none"
	for _, word := range []string{"v1", "v2"} {
		l.commit(word)
		l.recorder.restart()
		was := l.recorder.copies()
		unmount := l.mount(filepath.Join(l.dir, "served"))
		if err := l.pull(); err != nil {
			l.t.Fatal(err)
		}
		events, after := l.recorder.events(), l.recorder.copies()
		if got := l.versions(); got[word] != 2*lossFiles {
			l.t.Fatalf("the files are %v", got)
		}
		unmount()
		l.t.Logf("%s: %d events", word, len(events))
		for range times {
			l.cut(was, events[:chance.IntN(len(events))], chance, before, word)
		}
		l.cut(was, events, chance, word, word)
		l.recorder.setBack(after)
		before = word
	}
}

// cut is a power loss behind these events, and what comes after it.
func (l *lostHost) cut(was map[string]*recordedDisk, events []diskEvent, chance *rand.Rand, old, word string) {
	l.t.Helper()
	images, err := os.MkdirTemp(l.dir, "lost") // new files each time: a loop device that has not let go of the last one yet would be used again, with what it remembers
	if err != nil {
		l.t.Fatal(err)
	}
	for disk, of := range l.recorder.disks {
		was[disk].lose(events, of, chance).save(l.t, filepath.Join(images, disk))
	}
	defer l.mount(images)()
	for version, n := range l.versions() {
		if version != old && version != word {
			l.t.Errorf("cut behind event %d: %d files: %s; want %s or %s", len(events), n, version, old, word)
		}
	}
	l.recorder.restart()
	if err := l.pull(); err != nil {
		l.t.Errorf("cut behind event %d: the next pull: %v", len(events), err)
		return
	}
	if got := l.versions(); got[word] != 2*lossFiles {
		l.t.Errorf("cut behind event %d: after the next pull the files are %v", len(events), got)
	}
	if left, err := filepath.Glob(filepath.Join(l.at("root"), "etc/app/.*")); len(left) > 0 || err != nil {
		l.t.Errorf("cut behind event %d: the next pull left %q %v", len(events), left, err)
	}
	l.judge(len(events), marks(events), marks(l.recorder.events()), word)
}

// judge compares the marks of the pull that was cut off with those of the next one.
func (l *lostHost) judge(at int, first, second []string, word string) {
	l.t.Helper()
	order := []string{"saw a " + word, "after a", "saw b " + word, "after b"}
	for i, mark := range order {
		later := slices.ContainsFunc(order[i+1:], func(next string) bool { return slices.Contains(first, next) })
		if later && slices.Contains(second, mark) {
			l.t.Errorf("cut behind event %d: %q ran again although what came after it had begun: %q, then %q", at, mark, first, second)
		}
		if !slices.Contains(first, mark) && !slices.Contains(second, mark) {
			l.t.Errorf("cut behind event %d: %q never ran: %q, then %q", at, mark, first, second)
		}
	}
}

func marks(events []diskEvent) []string {
	var out []string
	for _, e := range events {
		if e.mark != "" {
			out = append(out, e.mark)
		}
	}
	return out
}
