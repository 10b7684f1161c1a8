package mount

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/moby/sys/mountinfo"

	"github.com/pullet/pullet/apply"
)

// checkOptions finds options that /etc/fstab and mount(8) do not read as they are meant.
func checkOptions(options []string) error {
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		switch {
		case name == "":
			return apply.BadParam("options", "there is an empty option; write options with one comma between them")
		case strings.ContainsFunc(name, unicode.IsSpace) || strings.TrimSpace(value) != value:
			return apply.BadParam("options", "the option %q has a blank; write options with commas alone: ro,noatime", o)
		case strings.ContainsFunc(o, unicode.IsControl):
			return apply.BadParam("options", "the option %q has a control character", o)
		case strings.Count(o, `"`)%2 != 0:
			return apply.BadParam("options", "the option %q has an unterminated quote", o)
		case name == "remount" || name == "move":
			return apply.BadParam("options", "%q is not an option of /etc/fstab", name)
		}
	}
	return nil
}

// splitOptions splits at commas, but not within quotes, which contexts of SELinux need. No options are the defaults.
func splitOptions(text string) []string {
	if text == "" {
		return []string{"defaults"}
	}
	var out []string
	begin, quoted := 0, false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ',' && !quoted:
			out, begin = append(out, text[begin:i]), i+1
		}
	}
	return append(out, text[begin:])
}

// flagsOf is what options say of the flags that the kernel shows for every mount. Later ones win. Flags that are not
// mentioned are off, as mount(8) has it, and access times are relative. Of a bind nothing is known but what is
// mentioned; fuse has flags of its own, and some file systems are never written.
func flagsOf(options []string, fstype string) map[string]bool {
	want := map[string]bool{}
	set := func(value bool, flags ...string) {
		for _, f := range flags {
			want[f] = value
		}
	}
	if !bindsAny(options) {
		set(false, "noatime", "nodiratime")
		set(true, "relatime")
		if !strings.HasPrefix(fstype, "fuse") {
			set(false, "nosuid", "nodev", "noexec")
		}
		if !slices.Contains([]string{"cramfs", "erofs", "iso9660", "romfs", "squashfs"}, fstype) {
			set(false, "ro")
		}
	}
	for _, o := range options {
		switch o {
		case "rw":
			set(false, "ro")
		case "ro", "nosuid", "nodev", "noexec", "nodiratime", "nosymfollow":
			set(true, o)
		case "suid", "dev", "exec", "diratime", "symfollow":
			set(false, "no"+o)
		case "user", "users":
			set(true, "nosuid", "nodev", "noexec")
		case "owner", "group":
			set(true, "nosuid", "nodev")
		case "noatime":
			set(true, "noatime")
			set(false, "relatime")
		case "relatime", "atime":
			set(false, "noatime")
			set(true, "relatime")
		case "strictatime": // it is shown as neither of the others
			set(false, "noatime", "relatime")
		}
	}
	return want
}

// bindsAny reports whether the options are those of a bind.
func bindsAny(options []string) bool {
	return slices.Contains(options, "bind") || slices.Contains(options, "rbind")
}

// onDemand reports whether the options leave a mount to who asks for it, so that it is not mounted at boot. Later ones
// win.
func onDemand(options []string) bool {
	demand := false
	for _, o := range options {
		if o == "auto" || o == "noauto" {
			demand = o == "noauto"
		}
	}
	return demand
}

// flagWords are flags as options, in order.
func flagWords(flags map[string]bool) []string {
	var out []string
	for _, f := range slices.Sorted(maps.Keys(flags)) {
		switch {
		case f == "noatime" || f == "relatime": // three values, below
		case flags[f]:
			out = append(out, f)
		case f == "ro":
			out = append(out, "rw")
		default:
			out = append(out, strings.TrimPrefix(f, "no"))
		}
	}
	_, some := flags["noatime"]
	switch {
	case flags["noatime"]:
		return append(out, "noatime")
	case flags["relatime"]:
		return append(out, "relatime")
	case some:
		return append(out, "strictatime")
	}
	return out
}

// mountFlags are the flags of a mount.
func mountFlags(m *mountinfo.Info) map[string]bool {
	out := map[string]bool{
		"ro":         false,
		"nosuid":     false,
		"nodev":      false,
		"noexec":     false,
		"nodiratime": false,
		"noatime":    false,
		"relatime":   false,
	}
	for _, o := range strings.Split(m.Options, ",") {
		if _, known := out[o]; known || o == "nosymfollow" {
			out[o] = true
		}
	}
	out["ro"] = out["ro"] || slices.Contains(strings.Split(m.VFSOptions, ","), "ro")
	return out
}

// differs are the options that a mount does not have, and those of which nobody can tell.
func (a *Mounted) differs(m *mountinfo.Info, point string) (options, unseen []string, err error) {
	have, other := mountFlags(m), map[string]bool{}
	want, err := a.wantedFlags(m)
	if err != nil {
		return nil, nil, err
	}
	for f, v := range want {
		if have[f] != v {
			other[f] = v
			if f == "noatime" || f == "relatime" {
				other["noatime"], other["relatime"] = want["noatime"], want["relatime"]
			}
		}
	}
	options = flagWords(other)
	for _, o := range a.ownOptions() {
		same, seen, err := hasOption(m, point, o)
		switch {
		case err != nil:
			return nil, nil, err
		case !seen:
			unseen = append(unseen, o)
		case !same:
			options = append(options, o)
		}
	}
	return options, unseen, nil
}

// hasOption compares an option of a tmpfs. What other file systems show is often not what they were given.
func hasOption(m *mountinfo.Info, point, option string) (same, seen bool, err error) {
	name, value, _ := strings.Cut(option, "=")
	want, ok := parseSize(value)
	if m.FSType != "tmpfs" || !ok || name != "size" && name != "nr_inodes" {
		return false, false, nil
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(point, &st); err != nil {
		return false, false, err
	}
	if name == "nr_inodes" {
		return st.Files == want, true, nil
	}
	page := uint64(st.Bsize)
	return st.Blocks == (want+page-1)/page, true, nil
}

// parseSize reads a number with the kernel's suffixes. A part of the memory is none.
func parseSize(text string) (uint64, bool) {
	shift := 0
	if last := len(text) - 1; last > 0 {
		if i := strings.IndexByte("kmgt", text[last]|0x20); i >= 0 { // in lower case
			text, shift = text[:last], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n << shift, err == nil && n<<shift>>shift == n
}

// ownOptions are those of the file system itself: neither flags nor what is for mount(8), for systemd or for the boot.
// A bind has none.
func (a *Mounted) ownOptions() []string {
	if a.binds() {
		return nil
	}
	var out []string
	for _, o := range a.options {
		name, _, _ := strings.Cut(o, "=")
		if !outside(name) && len(flagsOf([]string{"bind", name}, "")) == 0 {
			out = append(out, o)
		}
	}
	return out
}

// outside reports an option that no file system gets to see.
func outside(name string) bool {
	word, _ := filepath.Match("[xX]-*", name)
	return word ||
		slices.Contains(
			[]string{"defaults", "auto", "noauto", "nofail", "_netdev", "nouser", "nousers", "nogroup", "noowner",
				"comment", "loop", "offset", "sizelimit", "shared", "private", "slave", "unbindable", "rshared", "rprivate",
				"rslave", "runbindable"},
			name,
		)
}

// remountOptions are all flags of a mount as they should be, with the file system's own options.
func (a *Mounted) remountOptions(m *mountinfo.Info) ([]string, error) {
	flags := mountFlags(m)
	want, err := a.wantedFlags(m)
	maps.Copy(flags, want)
	return append(flagWords(flags), a.ownOptions()...), err
}

// wantedFlags are the flags that mount(8) would give the mount. A bind has those of what is bound, unless its options
// mention them.
func (a *Mounted) wantedFlags(m *mountinfo.Info) (map[string]bool, error) {
	want := flagsOf(a.options, m.FSType)
	if a.binds() {
		bound, err := mountOf(a.Device, m.ID)
		if err != nil {
			return nil, err
		}
		want = withFlags(bound, want)
	}
	if _, said := want["nosymfollow"]; !said && mountFlags(m)["nosymfollow"] {
		want["nosymfollow"] = false
	}
	return want, nil
}

// withFlags are the flags of a mount, and over them those that are mentioned.
func withFlags(m *mountinfo.Info, mentioned map[string]bool) map[string]bool {
	if m == nil {
		return mentioned
	}
	out := mountFlags(m)
	maps.Copy(out, mentioned)
	return out
}
