package place

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/hostfile"
)

// Permissions are who owns a file and what its mode is. What is not given is left as it is; new files get a default
// mode and the agent's own user.
type Permissions struct {
	Mode  string `yaml:"mode"`  // octal: 0644
	Owner string `yaml:"owner"` // name or number
	Group string `yaml:"group"` // name or number
}

// Wanted is Permissions in the kernel's numbers: -1 leaves a value alone.
type Wanted struct {
	Mode            fs.FileMode
	SetMode         bool // false: Mode is only for a new file
	UID, GID        int
	noUser, noGroup string // names that the host does not have; an earlier step may still make them
	owner, group    string // as they are written
}

// CheckMode finds a mode that is not one: an *apply.ParamError.
func (p Permissions) CheckMode() error {
	return checkMode("mode", p.Mode)
}

func checkMode(param, text string) error {
	_, err := (Permissions{Mode: text}).mode()
	number, decimal := strconv.ParseUint(text, 10, 16)
	if decimal == nil && number <= 0o7777 && text[0] != '0' && (err != nil || slices.Contains(decimalModes, number)) {
		return apply.BadParam(param, "%s is decimal for the mode %04o: write %04o", text, number, number)
	}
	if err == nil {
		return nil
	}
	return apply.BadParam(param, "%q is not a mode: write it in octal, such as 0644", text)
}

// decimalModes are modes as other tools print them in decimal. Read as octal they would be modes that nobody means: 420
// is r---w----.
var decimalModes = []uint64{0o644, 0o640, 0o664, 0o555}

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

// Wanted looks the names up in the host's own passwd and group files. A name that the host does not have is a
// difference when the host is compared; what applies asks Known first.
func (p Permissions) Wanted(h *apply.Host) (Wanted, error) {
	w := Wanted{UID: -1, GID: -1, SetMode: p.Mode != "", owner: p.Owner, group: p.Group}
	var err error
	if w.Mode, err = p.mode(); err != nil {
		return w, err
	}
	if w.UID, err = lookup(h, "passwd", "user", p.Owner); errors.Is(err, errNoAccount) {
		w.noUser, err = p.Owner, nil
	}
	if err != nil {
		return w, err
	}
	if w.GID, err = lookup(h, "group", "group", p.Group); errors.Is(err, errNoAccount) {
		w.noGroup, err = p.Group, nil
	}
	return w, err
}

// Known is an error where nothing can be given to the owner or the group, because the host does not have them.
func (w Wanted) Known() error {
	switch {
	case w.noUser != "":
		return fmt.Errorf(
			"there is no user %q on this host: make it with a user.present step before this one",
			w.noUser,
		)
	case w.noGroup != "":
		return fmt.Errorf(
			"there is no group %q on this host: make it with a group.present step before this one",
			w.noGroup,
		)
	}
	return nil
}

// errNoAccount is a user or group that the host does not have.
var errNoAccount = errors.New("not on this host")

// lookup is the number of a user or group name; -1 for no name.
func lookup(h *apply.Host, file, kind, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if id, err := strconv.Atoi(name); err == nil && id >= 0 {
		return id, nil
	}
	all, err := passwd.Read(h, file)
	if err != nil {
		return -1, fmt.Errorf("%s %q: %w", kind, name, err)
	}
	if found := all.Named(name); len(found) > passwd.ID {
		return strconv.Atoi(found[passwd.ID])
	}
	return -1, fmt.Errorf("%s %q: %w", kind, name, errNoAccount)
}

// ModeBits is a mode as it is written: 0644, 4755.
func ModeBits(m fs.FileMode) string {
	bits := uint32(m.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

const modeMask = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Differs names what of the permissions is not as wanted.
func (w Wanted) Differs(info fs.FileInfo) []string {
	var out []string
	if have := info.Mode() & modeMask; w.SetMode && have != w.Mode {
		out = append(out, "mode "+ModeBits(have)+" -> "+ModeBits(w.Mode))
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return out
	}
	if w.UID >= 0 && int(st.Uid) != w.UID {
		out = append(out, fmt.Sprintf("owner %d -> %d", st.Uid, w.UID))
	}
	if w.noUser != "" {
		out = append(out, "owner "+w.noUser+" (not there yet)")
	}
	if w.GID >= 0 && int(st.Gid) != w.GID {
		out = append(out, fmt.Sprintf("group %d -> %d", st.Gid, w.GID))
	}
	if w.noGroup != "" {
		out = append(out, "group "+w.noGroup+" (not there yet)")
	}
	return out
}

// Created returns the summary of a file or directory that is made, with its mode, owner and group where they are not
// the usual ones. It names these as they are written: an account may not exist yet.
func (w Wanted) Created(usual fs.FileMode) string {
	out := "create"
	if w.SetMode && w.Mode != usual {
		out += ", mode " + ModeBits(w.Mode)
	}
	for _, one := range []struct{ what, name string }{{"owner", w.owner}, {"group", w.group}} {
		if one.name != "" && one.name != "root" && one.name != "0" {
			out += ", " + one.what + " " + one.name
		}
	}
	return out
}

// Settable is what owner and mode are set on.
type Settable interface {
	Set(hostfile.Attributes) error
}

// Set gives a file or a directory its owner and mode.
func (w Wanted) Set(on Settable) error {
	if err := w.Known(); err != nil {
		return err
	}
	return on.Set(hostfile.Attributes{UID: w.UID, GID: w.GID, Mode: w.Mode, SetMode: w.SetMode})
}
