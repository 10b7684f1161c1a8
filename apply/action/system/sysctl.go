package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/render"
)

// SysctlPresent is a parameter of the kernel with this value, now and after the next boot. Its name is written as for
// sysctl(8): with dots, where a slash stands for a dot in the name of an interface (net.ipv4.conf.eth0/100.forwarding),
// or with slashes (net/ipv4/conf/eth0.100/forwarding). Values are compared without regard to blanks and tabs.
//
// Now: the value is written to /proc/sys and read back. When the kernel refuses it, or makes something else of it, the
// step fails and the old value stands. A parameter that is not there yet may come with a module: the plan goes on, and
// the step fails if it is still missing. Below another root there is no kernel, and the boot does this.
//
// At boot: the assignment stands in a file of its own, or in the given file, whose other lines stay. A file that is
// read later and says something else makes the step fail: correct it, or choose a later file. Patterns in such files
// are not looked at. What this step set is not taken back when the step goes away: with prune: true its own file goes,
// and the value stays until the next boot.
//
// Example:
//
//	steps:
//	  - name: forwarding
//	    action: sysctl.present
//	    parameters: {name: net.ipv4.ip_forward, value: 1}
//	  - name: receive buffers
//	    action: sysctl.present
//	    parameters:
//	      name: net.ipv4.tcp_rmem
//	      value: [4096, 131072, 33554432]
//	      file: /etc/sysctl.d/70-buffers.conf
type SysctlPresent struct {
	Name  string         `yaml:"name,required"`  // of the parameter: net.ipv4.ip_forward
	Value render.Strings `yaml:"value,required"` // a number, a text, or a list of them
	File  string         `yaml:"file"`           // where it stands for the boot; none: /etc/sysctl.d/60-pullet-NAME.conf

	key  string // the parameter's path below /proc/sys
	want string
}

// Bind reads the name and the value.
func (a *SysctlPresent) Bind(apply.Binding) error {
	a.key, a.want = sysctlKey(a.Name), strings.TrimSpace(strings.Join(a.Value, " "))
	switch {
	case a.key == "":
		return apply.BadParam(
			"name",
			"%q is not the name of a kernel parameter: write one such as net.ipv4.ip_forward",
			a.Name,
		)
	case a.want == "":
		return apply.BadParam("value", "is empty")
	case strings.ContainsAny(a.want, "\n\x00"):
		return apply.BadParam("value", "%q is more than one line", a.want)
	case a.File == "":
		a.File = ownSysctlFile(a.key)
		return nil
	}
	if err := apply.AbsPath("file", a.File); err != nil {
		return err
	}
	a.File = filepath.Clean(a.File)
	if a.File != "/etc/sysctl.conf" &&
		(!slices.Contains(sysctlDirs(), filepath.Dir(a.File)) || filepath.Ext(a.File) != ".conf") {
		return apply.BadParam("file", "%s is not read at boot: choose one such as /etc/sysctl.d/70-site.conf", a.File)
	}
	return nil
}

// ownSysctlFile is where a parameter stands that names no file.
func ownSysctlFile(key string) string {
	return "/etc/sysctl.d/60-pullet-" + strings.ReplaceAll(sysctlName(key), "/", ":") + ".conf"
}

// Manages is the file for the boot; the value that the kernel has now stays.
func (a *SysctlPresent) Manages() []apply.Resource {
	if own := ownSysctlFile(sysctlKey(a.Name)); a.File == "" || a.File == own {
		return []apply.Resource{place.Resource(own)}
	}
	return []apply.Resource{{ID: "sysctl " + a.Name, Path: path.Clean(a.File), Part: true}}
}

// Check compares the kernel's value, the file's, and what the boot would make of both.
func (a *SysctlPresent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	var parts []string
	if h.IsMachine() {
		have, err := a.read(h)
		switch {
		case hostfile.NotThere(err):
			parts = append(parts, "now none -> "+orNone(a.want))
		case err != nil:
			return apply.Change{}, err
		case !sameSysctl(have, a.want):
			parts = append(parts, "now "+orNone(have)+" -> "+orNone(a.want))
		}
	}
	file, err := place.ReadText(h, a.File)
	if err != nil {
		return apply.Change{}, err
	}
	have, text := setSysctl(file.Text, a.key, a.want)
	diff := ""
	if text != file.Text {
		parts, diff = append(parts, "at boot "+orNone(have)+" -> "+orNone(a.want)), file.Diff(text)
	}
	over, err := a.overridden(h)
	if err != nil {
		return apply.Change{}, err
	}
	if over != "" {
		parts = append(parts, "overridden by "+over)
	}
	return apply.Change{Summary: strings.Join(parts, ", "), Diff: diff}, nil
}

// Apply sets the kernel's value first: what it refuses does not get into a file.
func (a *SysctlPresent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, a.File)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	over, err := a.overridden(h)
	if err != nil {
		return apply.Output{}, err
	}
	if over != "" {
		return apply.Output{}, fmt.Errorf(
			"%s sets %s too, and is read after %s at boot: correct it, or give this step a later file",
			over,
			sysctlName(a.key),
			a.File,
		)
	}
	if h.IsMachine() {
		if err := a.set(h); err != nil {
			return apply.Output{}, err
		}
	}
	file, err := place.ReadText(h, a.File)
	if err != nil {
		return apply.Output{}, err
	}
	if _, text := setSysctl(file.Text, a.key, a.want); text != file.Text {
		_, err = file.Replace(ctx, h, text)
	}
	return apply.Output{State: a.want}, err
}

// read is the kernel's value.
func (a *SysctlPresent) read(h *apply.Host) (string, error) {
	path, err := h.Path("/proc/sys/" + a.key)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, syscall.EIO) { // some have no value until they are given one
		return "", nil
	}
	if errors.Is(err, syscall.EISDIR) {
		return "", fmt.Errorf("%s is not a parameter, but a group of them", sysctlName(a.key))
	}
	return strings.TrimSpace(string(data)), err
}

// set writes the kernel's value and looks at what became of it.
func (a *SysctlPresent) set(h *apply.Host) error {
	name := sysctlName(a.key)
	old, err := a.read(h)
	switch {
	case hostfile.NotThere(err):
		return a.unknown(h)
	case err != nil:
		return err
	case sameSysctl(old, a.want):
		return nil
	}
	if err := a.write(h, a.want); err != nil {
		return fmt.Errorf("the kernel refuses %q for %s: %w", a.want, name, errors.Unwrap(err))
	}
	have, err := a.read(h)
	if err != nil || sameSysctl(have, a.want) {
		return err
	}
	err = fmt.Errorf(
		"the kernel made %q of %q for %s, which has its old value again: write what the kernel would hold",
		have,
		a.want,
		name,
	)
	if back := a.write(h, old); back != nil {
		return fmt.Errorf(
			"the kernel made %q of %q for %s, and does not take its old value %q back: %w",
			have,
			a.want,
			name,
			old,
			errors.Unwrap(back),
		)
	}
	return err
}

func (a *SysctlPresent) write(h *apply.Host, value string) error {
	path, err := h.Path("/proc/sys/" + a.key)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value + "\n") // at once: the kernel takes each write as a whole value
	return err
}

// unknown says that there is no such parameter, and what may have been meant.
func (a *SysctlPresent) unknown(h *apply.Host) error {
	dir, err := h.Path("/proc/sys/" + filepath.Dir(a.key))
	if err != nil {
		return err
	}
	found, _ := os.ReadDir(dir) // a group that is not there has nothing that is near
	var known []string
	for _, e := range found {
		known = append(known, e.Name())
	}
	hint := "load its module in a step before this one (kmod.present)"
	if near := render.Nearest(filepath.Base(a.key), known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", sysctlName(filepath.Join(filepath.Dir(a.key), near)))
	}
	return fmt.Errorf("the kernel has no parameter %s: %s", sysctlName(a.key), hint)
}
