package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const nobody = 65534 // a user without rights

// edited is what editPrivately gave.
type edited struct{ Saved, Failed string }

// editorProcess is the name under which the test binary edits a file, in the tests below. It gets the text on
// descriptor 3, and answers on 4.
const editorProcess = "edit-privately"

func runEditorProcess() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	if os.Getenv("PULLET_TEST_EDIT_ALONE") != "" { // a user namespace of its own
		must(os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0o644))
	}
	hideMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	given, answers := os.NewFile(3, "given"), os.NewFile(4, "answers")
	text, err := io.ReadAll(given)
	must(err)
	saved, err := editPrivately(ctx, os.Args[1], text)
	if dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); dumpable != 0 {
		panic("the memory is shown after the editor")
	}
	e := edited{Saved: string(saved)}
	if err != nil {
		e.Failed = err.Error()
	}
	must(json.NewEncoder(answers).Encode(e))
}

// desk is where a user edits: directories of its own.
type desk struct {
	*testing.T
	uid            int
	tmp, out, home string
	canary         string // in every text, and nowhere else
	env            []string
	attr           *syscall.SysProcAttr
}

// asUsers runs a test as each user that edits: root and another, or who runs the tests.
func asUsers(t *testing.T, test func(d *desk)) {
	t.Parallel()
	users := []int{0, nobody}
	if os.Geteuid() != 0 {
		users = []int{os.Geteuid()}
	}
	for _, uid := range users {
		t.Run(fmt.Sprintf("uid=%d", uid), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, uid)
			d.needsNamespaces()
			test(d)
		})
	}
}

func newDesk(t *testing.T, uid int) *desk {
	t.Helper()
	top, err := os.MkdirTemp("", "desk") // others cannot reach what t.TempDir makes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	d := &desk{T: t, uid: uid, tmp: top + "/tmp", out: top + "/out", home: top + "/home", canary: "canary-" + rand.Text()}
	for _, dir := range []string{top, d.tmp, d.out, d.home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	d.attr = &syscall.SysProcAttr{Setpgid: true}
	if uid != os.Geteuid() {
		d.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return d
}

// needsNamespaces skips the test where the user may have none, as another program finds.
func (d *desk) needsNamespaces() {
	d.Helper()
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "true")
	if d.uid != 0 {
		cmd.Args = append(cmd.Args[:1], append([]string{"--user", "--map-root-user"}, cmd.Args[1:]...)...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.attr.Credential}
	if said, err := cmd.CombinedOutput(); cmd.ProcessState != nil && err != nil {
		d.Skipf("namespaces are not permitted here to uid %d: %s", d.uid, said)
	}
}

// script makes an editor of a shell's commands, which know $out. It is not started as a program, which a test that
// starts another just now would keep busy.
func (d *desk) script(commands string) string {
	d.Helper()
	path := d.out + "/ed itor"
	if err := os.WriteFile(path, []byte("out='"+d.out+"'\n"+commands+"\n"), 0o644); err != nil {
		d.Fatal(err)
	}
	return "sh '" + path + "'"
}

// session is a process that edits.
type session struct {
	*desk
	cmd    *exec.Cmd
	answer *os.File
	said   strings.Builder
}

// start has a process edit db.yaml.
func (d *desk) start(editor, text string) *session {
	d.Helper()
	given, to, err := os.Pipe()
	if err != nil {
		d.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		d.Fatal(err)
	}
	s := &session{desk: d, cmd: exec.Command("/proc/self/exe"), answer: from}
	s.cmd.Args = []string{editorProcess, "secrets/db.yaml"}
	s.cmd.Env = append(os.Environ(), "TMPDIR="+d.tmp, "HOME="+d.home, "VISUAL=", "EDITOR="+editor)
	s.cmd.Env = append(s.cmd.Env, d.env...)
	s.cmd.ExtraFiles, s.cmd.SysProcAttr, s.cmd.Dir = []*os.File{given, answers}, d.attr, d.out
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.cmd.WaitDelay = 20 * time.Second
	if err := s.cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = s.cmd.Process.Kill() }) // of a test that failed
	for _, f := range []*os.File{given, answers} {
		f.Close()
	}
	go func() {
		_, _ = io.WriteString(to, text) // one that is killed does not read it
		to.Close()
	}()
	return s
}

// end is what the process gave at its end.
func (s *session) end() (e edited) {
	s.Helper()
	answered := json.NewDecoder(s.answer).Decode(&e)
	if err := s.cmd.Wait(); err != nil || answered != nil {
		s.Fatalf("%v, %v: %s", err, answered, s.said.String())
	}
	s.answer.Close()
	return e
}

// edit has an editor of a shell's commands edit a text.
func (d *desk) edit(commands, text string) edited {
	d.Helper()
	return d.start(d.script(commands), text).end()
}

// saw is what an editor wrote to a file of $out.
func (d *desk) saw(name string) string {
	d.Helper()
	text, err := os.ReadFile(filepath.Join(d.out, name))
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

// nothingLeft looks for the text, and for directories of editors, where they are not to be.
func (d *desk) nothingLeft(directories int) {
	d.Helper()
	for _, dir := range []string{filepath.Dir(d.tmp), "/dev/shm"} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if path == os.TempDir() {
				return filepath.SkipDir // of other tests, whose files may be giants
			}
			if err != nil || !e.Type().IsRegular() {
				return nil // of others, who remove it just now
			}
			if text, _ := os.ReadFile(path); strings.Contains(path+string(text), d.canary) {
				d.Errorf("%s has the text", path)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			d.Error(err)
		}
	}
	left, err := os.ReadDir(d.tmp)
	if err != nil || len(left) > directories {
		d.Errorf("%v, %v", left, err)
	}
	for _, e := range left {
		if err := os.Remove(filepath.Join(d.tmp, e.Name())); err != nil {
			d.Errorf("what a kill leaves is no empty directory: %v", err)
		}
	}
}

// TestEdit: what was saved comes back, and nothing is left.
func TestEdit(t *testing.T) {
	asUsers(t, func(d *desk) {
		for _, c := range []struct{ commands, want string }{
			{`printf 'more\n' >>"$1"`, "a: " + d.canary + "\nmore\n"},
			{`:`, "a: " + d.canary + "\n"},
			{`: >"$1"`, ""},
			{`sed 's/^a/b/' "$1" >"$1.new"; mv "$1.new" "$1"`, "b: " + d.canary + "\n"},
			{`head -c 1048576 /dev/zero | tr '\0' x >"$1"`, strings.Repeat("x", mostEdited)},
		} {
			if got := d.edit(c.commands, "a: "+d.canary+"\n"); got.Failed != "" || got.Saved != c.want {
				d.Errorf("%s: %d bytes, %s", c.commands, len(got.Saved), got.Failed)
			}
			d.nothingLeft(0)
		}
		big := strings.Repeat("y", mostEdited)
		if got := d.edit(`:`, big); got.Saved != big {
			d.Errorf("%d bytes, %s", len(got.Saved), got.Failed)
		}
	})
}

// TestEditorSurroundings: the editor is the user's, and has a place of its own that is not dumped.
func TestEditorSurroundings(t *testing.T) {
	asUsers(t, func(d *desk) {
		d.env = []string{"VISUAL=" + d.script(`
			echo "$2 $(id -u) $HOME $(stat -c %a "$3" .)" | tr '\n' ' ' >"$out/saw"
			[ "$3" = "$PWD/db.yaml" ] && [ "$TMPDIR" = "$PWD" ] && [ "$(pwd -P)" = "$PWD" ] && echo "$PWD" >"$out/dir"
			grep 'Max core' /proc/self/limits >"$out/core"
			grep -E 'CapEff|CapAmb|SigIgn' /proc/self/status >"$out/status"
			ls -l /proc/self/fd >"$out/fds"`) + ` --opt "two words"`}
		if got := d.start("false", d.canary).end(); got.Failed != "" {
			d.Fatal(got)
		}
		if got, want := d.saw("saw"), fmt.Sprintf("two words %d %s 600 700 ", d.uid, d.home); got != want {
			d.Errorf("%q instead of %q", got, want)
		}
		if dir := d.saw("dir"); !strings.HasPrefix(dir, d.tmp+"/pullet-edit-") {
			d.Error(dir)
		}
		if core := strings.Fields(d.saw("core")); core[4] != "1" || core[5] != "1" {
			d.Error(core)
		}
		status := d.saw("status")
		if d.uid != 0 && (!strings.Contains(status, "CapEff:\t0000000000000000") || !strings.Contains(status, "CapAmb:\t0000000000000000")) {
			d.Errorf("the editor has rights: %s", status)
		}
		_, rest, _ := strings.Cut(status, "SigIgn:\t")
		ignored, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
		if ending := uint64(1<<(syscall.SIGINT-1) | 1<<(syscall.SIGQUIT-1)); err != nil || ignored&ending != 0 {
			d.Errorf("the editor ignores signals: %s", status)
		}
		if fds := d.saw("fds"); strings.Contains(fds, "pipe:") && strings.Count(fds, "pipe:") > 2 { // 1 and 2, of the test
			d.Error(fds)
		}
	})
}

// TestEditFails: each failure has its text, and nothing is left.
func TestEditFails(t *testing.T) {
	asUsers(t, func(d *desk) {
		for _, c := range []struct{ commands, want string }{
			{`exit 1`, "the editor failed (exit 1): nothing was changed"},
			{`kill -9 $$`, "the editor failed (exit 137): nothing was changed"}, // as the shell that runs it says
			{`kill -9 $PPID`, "the editor failed (signal: killed): nothing was changed"},
			{`rm "$1"`, "db.yaml is gone after the editor: nothing was changed"},
			{`rm "$1"; ln -s /etc/passwd "$1"`, "db.yaml is no regular file after the editor: nothing was changed"},
			{`rm "$1"; mkfifo "$1"`, "db.yaml is no regular file after the editor: nothing was changed"},
			{`echo x >>"$1"; head -c 1048576 /dev/zero >>"$1"`, fmt.Sprintf("db.yaml has %d bytes after the editor, and 1048576 are possible: nothing was changed", mostEdited+2+len(d.canary))},
		} {
			if got := d.edit(c.commands, d.canary); got.Failed != c.want || got.Saved != "" {
				d.Errorf("%s: %s, %d bytes", c.commands, got.Failed, len(got.Saved))
			}
			d.nothingLeft(0)
		}
		if got := d.start("/no/such/editor", d.canary).end(); got.Failed != "the editor failed (exit 127): nothing was changed" {
			d.Error(got)
		}
		if got := d.edit(`:`, strings.Repeat("x", mostEdited+1)); got.Failed != "secrets/db.yaml has 1048577 bytes: at most 1048576 can be edited" {
			d.Error(got.Failed)
		}
		d.env = []string{"PATH=" + d.home}
		if got := d.start("", d.canary).end(); got.Failed != "there is no editor: set EDITOR to one, such as EDITOR=nano" {
			d.Error(got)
		}
		d.env = []string{"TMPDIR=" + d.home + "/none"}
		if got := d.edit(`:`, d.canary); !strings.HasPrefix(got.Failed, "a directory for the editor: ") {
			d.Error(got)
		}
		d.nothingLeft(0)
	})
}
