package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// FileManaged is a regular file with this content, owner and mode. It is replaced as a whole, by a rename: readers see the old
// file or the new one. Without content and source only the owner and mode of an existing file are managed, and a missing one is
// made empty.
//
// Example:
//
//	steps:
//	  - name: sshd
//	    action: file.managed
//	    parameters:
//	      name: /etc/ssh/sshd_config.d/fleet.conf
//	      content: |
//	        PermitRootLogin no
//	        Banner "{{ server.name }}"
//	      mode: 0600
//	      validate: sshd -t -f %s
type FileManaged struct {
	Name        string  `yaml:"name,required"` // absolute path
	Content     *string `yaml:"content"`       // the text itself
	Source      string  `yaml:"source"`        // a file below files/ of the repository
	Template    bool    `yaml:"template"`      // execute the source as a template
	Permissions `yaml:",inline"`
	Validate    string `yaml:"validate"` // a command that must succeed before the file is replaced; %s is the candidate's path
	Backup      bool   `yaml:"backup"`   // keep the file that is replaced, in the state directory
	MakeDirs    bool   `yaml:"makeDirs"` // make missing parents, mode 0755

	want []byte // the content; nil: not managed
}

// newFileMode is the mode of a new file that says none.
const newFileMode = 0o644

// Bind reads the content: what is wrong with it is known before the node is touched.
func (a *FileManaged) Bind(b apply.Binding) error {
	if err := errors.Join(apply.AbsPath("name", a.Name), a.check()); err != nil {
		return err
	}
	switch {
	case a.Content != nil && a.Source != "":
		return apply.BadParam("source", "content and source exclude each other: keep one")
	case a.Template && a.Source == "":
		return apply.BadParam("template", "only a source can be a template: content is rendered with the job")
	case a.Validate != "" && !strings.Contains(a.Validate, "%s"):
		return apply.BadParam("validate", "%%s is missing: it stands for the path of the candidate")
	case a.Content != nil:
		a.want = []byte(*a.Content)
		return nil
	case a.Source == "":
		return nil
	}
	data, err := b.File(a.Source)
	if err != nil {
		return &apply.ParamError{Param: "source", Err: err}
	}
	if a.Template {
		data, err = b.Template("files/"+a.Source, string(data))
	}
	a.want = data
	return err
}

// Check compares content, owner and mode.
func (a *FileManaged) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	w, err := a.wanted(h)
	if err != nil {
		return apply.Change{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return apply.Change{Summary: "create", Diff: textDiff(a.Name, nil, a.want), New: true}, nil
	case err != nil:
		return apply.Change{}, err
	case info.IsDir():
		return apply.Change{}, fmt.Errorf("%s is a directory: remove it with file.absent first", a.Name)
	case info.Mode()&fs.ModeSymlink != 0:
		return apply.Change{Summary: "replace a symbolic link by a file", Diff: textDiff(a.Name, nil, a.want)}, nil
	case !info.Mode().IsRegular():
		return apply.Change{}, fmt.Errorf("%s is neither a file nor a link (%s)", a.Name, info.Mode().Type())
	}
	return a.compare(path, info, w)
}

// Manages is the file.
func (a *FileManaged) Manages() []apply.Resource { return resource(a.Name) }

func (a *FileManaged) compare(path string, info fs.FileInfo, w wanted) (apply.Change, error) {
	differs := w.differs(info)
	if a.want == nil || info.Size() == int64(len(a.want)) && len(a.want) == 0 {
		return apply.Change{Summary: strings.Join(differs, ", ")}, nil
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return apply.Change{}, err
	}
	if bytes.Equal(have, a.want) {
		return apply.Change{Summary: strings.Join(differs, ", ")}, nil
	}
	return apply.Change{
		Summary: strings.Join(append([]string{"content"}, differs...), ", "),
		Diff:    textDiff(a.Name, have, a.want),
	}, nil
}

// Apply writes a candidate beside the file, gives it owner and mode, has it validated, and renames it into place.
func (a *FileManaged) Apply(ctx context.Context, h *apply.Host, c apply.Change) (apply.Output, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	w, err := a.wanted(h)
	if err != nil {
		return apply.Output{}, err
	}
	old, err := os.Lstat(path)
	regular := err == nil && old.Mode().IsRegular()
	if regular && c.Diff == "" && !strings.HasPrefix(c.Summary, "content") { // owner and mode only
		return apply.Output{}, w.set(path)
	}
	if err := a.makeParents(path); err != nil {
		return apply.Output{}, err
	}
	if regular && a.Backup { // a link is not followed: it may lead out of the root
		if err := backup(h, a.Name, path); err != nil {
			return apply.Output{}, fmt.Errorf("backup: %w", err)
		}
	}
	return apply.Output{}, a.replace(ctx, h, path, w.orOf(old))
}

func (a *FileManaged) replace(ctx context.Context, h *apply.Host, path string, w wanted) error {
	// The dot hides the candidate from programs that read every file of a directory.
	t, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600))
	if err != nil {
		return err
	}
	defer t.Cleanup()
	if _, err := t.Write(a.want); err != nil {
		return fmt.Errorf("%s: %w; the old file is untouched", a.Name, err)
	}
	if err := w.set(t.Name()); err != nil {
		return err
	}
	if a.Validate != "" {
		if err := a.validate(ctx, h, t.Name()); err != nil {
			return err
		}
	}
	if err := t.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("%s: %w; the old file is untouched", a.Name, err)
	}
	return state.SyncDir(filepath.Dir(path))
}

// validate runs the command on the candidate.
func (a *FileManaged) validate(ctx context.Context, h *apply.Host, candidate string) error {
	line := strings.ReplaceAll(a.Validate, "%s", shellQuote(candidate))
	out, err := h.Run(ctx, apply.Command{Args: apply.Shell(line)})
	if err != nil {
		return fmt.Errorf("validate: %w; the old file is untouched", err)
	}
	if out.ExitCode != 0 {
		said := strings.ReplaceAll(apply.LastLines(out), candidate, a.Name)
		return fmt.Errorf("validate: exit code %d: %s; the old file is untouched", out.ExitCode, said)
	}
	return nil
}

func (a *FileManaged) makeParents(path string) error {
	dir := filepath.Dir(path)
	if a.MakeDirs {
		return os.MkdirAll(dir, 0o755)
	}
	if !exists(dir) {
		return fmt.Errorf("there is no directory %s: add makeDirs: true, or a file.directory step before this one", filepath.Dir(a.Name))
	}
	return nil
}

// orOf fills what is not asked for from the file that is replaced, or from the defaults of a new one.
func (w wanted) orOf(old fs.FileInfo) wanted {
	regular := old != nil && old.Mode().IsRegular()
	if !w.setMode {
		w.mode, w.setMode = newFileMode, true
		if regular {
			w.mode = old.Mode() & modeMask
		}
	}
	if st, ok := statOf(old); ok && regular {
		if w.uid < 0 && int(st.Uid) != os.Geteuid() {
			w.uid = int(st.Uid)
		}
		if w.gid < 0 && int(st.Gid) != os.Getegid() {
			w.gid = int(st.Gid)
		}
	}
	return w
}

func statOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

// backup copies a file into the state directory, named by its path and the time.
func backup(h *apply.Host, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir := filepath.Join(h.Backups, filepath.Clean(name)) // clean: no .. leads out of it
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000Z")), data, 0o600)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// shellQuote makes a text one word of a shell command.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
