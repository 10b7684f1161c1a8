package action

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
)

// Permissions are who owns a file and what its mode is. What is not given is left as it is; new files get a default mode and the
// agent's own user.
type Permissions struct {
	Mode  string `yaml:"mode"`  // octal: 0644
	Owner string `yaml:"owner"` // name or number
	Group string `yaml:"group"` // name or number
}

// wanted is Permissions in the kernel's numbers: -1 leaves a value alone.
type wanted struct {
	mode     fs.FileMode
	setMode  bool
	uid, gid int
}

// check finds a mode that is none.
func (p Permissions) check() error {
	if _, err := p.mode(); err != nil {
		return badMode("mode", p.Mode)
	}
	return nil
}

func badMode(param, text string) error {
	return apply.BadParam(param, "%q is not a mode: write it in octal, such as 0644", text)
}

// mode reads the octal mode with its setuid, setgid and sticky bits.
func (p Permissions) mode() (fs.FileMode, error) {
	if p.Mode == "" {
		return 0, nil
	}
	bits, err := strconv.ParseUint(strings.TrimPrefix(p.Mode, "0o"), 8, 16)
	if err != nil || bits > 0o7777 {
		return 0, fmt.Errorf("not an octal mode")
	}
	mode := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode, nil
}

// wanted looks the names up in the host's own passwd and group files.
func (p Permissions) wanted(h *apply.Host) (wanted, error) {
	w := wanted{uid: -1, gid: -1, setMode: p.Mode != ""}
	var err error
	if w.mode, err = p.mode(); err != nil {
		return w, err
	}
	if w.uid, err = lookup(h, "passwd", "user", p.Owner); err != nil {
		return w, err
	}
	w.gid, err = lookup(h, "group", "group", p.Group)
	return w, err
}

// lookup is the number of a user or group name; -1 for no name.
func lookup(h *apply.Host, file, kind, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if id, err := strconv.Atoi(name); err == nil && id >= 0 {
		return id, nil
	}
	all, err := readAccounts(h, file)
	if err != nil {
		return -1, fmt.Errorf("%s %q: %w", kind, name, err)
	}
	if found := all.named(name); len(found) > idField {
		return strconv.Atoi(found[idField])
	}
	return -1, fmt.Errorf("there is no %s %q on this host", kind, name)
}

// modeBits is a mode as it is written: 0644, 4755.
func modeBits(m fs.FileMode) string {
	bits := uint32(m.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

const modeMask = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// differs names what of the permissions is not as wanted.
func (w wanted) differs(info fs.FileInfo) []string {
	var out []string
	if have := info.Mode() & modeMask; w.setMode && have != w.mode {
		out = append(out, "mode "+modeBits(have)+" -> "+modeBits(w.mode))
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return out
	}
	if w.uid >= 0 && int(st.Uid) != w.uid {
		out = append(out, fmt.Sprintf("owner %d -> %d", st.Uid, w.uid))
	}
	if w.gid >= 0 && int(st.Gid) != w.gid {
		out = append(out, fmt.Sprintf("group %d -> %d", st.Gid, w.gid))
	}
	return out
}

// set gives a path its owner and mode. The owner comes first: changing it clears setuid.
func (w wanted) set(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if st, ok := statOf(info); !ok || w.uid >= 0 && int(st.Uid) != w.uid || w.gid >= 0 && int(st.Gid) != w.gid {
		if err := os.Lchown(path, w.uid, w.gid); err != nil {
			return err
		}
	}
	if w.setMode {
		return os.Chmod(path, w.mode)
	}
	return nil
}
