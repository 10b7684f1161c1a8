package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/render"
)

// KmodPresent is a module of the kernel that is loaded, now and after the next boot. A module that is built into the
// kernel counts as loaded. Hyphens and underscores in its name are the same.
//
// Now: what is not loaded is loaded by modprobe, with the options. Those of a module that is loaded already are used
// when it is loaded next. Below another root nothing is loaded, and the boot does this.
//
// At boot: its name stands in /etc/modules-load.d/pullet-NAME.conf and its options in /etc/modprobe.d/pullet-NAME.conf,
// both of which belong to this step as a whole. An image of the early boot (initramfs) is not made anew.
//
// Example:
//
//	steps:
//	  - name: bridges pass the firewall
//	    action: kmod.present
//	    parameters: {name: br_netfilter}
//	  - name: connection tracking
//	    action: kmod.present
//	    parameters: {name: nf_conntrack, options: [hashsize=131072]}
type KmodPresent struct {
	Name    string         `yaml:"name,required"` // of the module itself, not an alias: br_netfilter
	Options render.Strings `yaml:"options"`       // each NAME=VALUE, or a name alone
	Persist bool           `yaml:"persist"`       // load it at boot too; false leaves the files alone; default true

	module kmod
}

// Bind checks the name and the options.
func (a *KmodPresent) Bind(apply.Binding) (err error) {
	if a.module, err = newKmod(a.Name); err != nil {
		return err
	}
	a.Options = strings.Fields(strings.Join(a.Options, " "))
	for _, o := range a.Options {
		if !regexp.MustCompile(`^[A-Za-z0-9_.-]+(=[^\s#\\]*)?$`).MatchString(o) || o[0] == '-' {
			return apply.BadParam("options", "%q is not an option of a module: write NAME=VALUE", o)
		}
	}
	return nil
}

// files are the texts of the module's two files.
func (a *KmodPresent) files() (load, options string) {
	load = string(a.module) + "\n"
	if len(a.Options) > 0 {
		options = fmt.Sprintf("options %s %s\n", a.module, strings.Join(a.Options, " "))
	}
	return load, options
}

// Manages is the files for the boot; the module stays loaded.
func (a *KmodPresent) Manages() []apply.Resource {
	if !a.Persist {
		return nil
	}
	out := []apply.Resource{place.Resource(kmod(a.Name).loadFile())}
	if len(a.Options) > 0 {
		out = append(out, place.Resource(kmod(a.Name).optionsFile()))
	}
	return out
}

// Check looks at the kernel and the files.
func (a *KmodPresent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	var parts []string
	is := false
	if h.IsMachine() {
		var err error
		if is, err = a.module.loaded(); err != nil {
			return apply.Change{}, err
		}
		if !is {
			parts = append(parts, "load")
		}
	}
	if !a.Persist {
		return apply.Change{Summary: strings.Join(parts, ", ")}, nil
	}
	load, options := a.files()
	later := "options"
	if is {
		later = "options, for when it is loaded next"
	}
	return a.module.compare(
		h,
		parts,
		wantText{a.module.loadFile(), load, "load at boot"},
		wantText{a.module.optionsFile(), options, later},
	)
}

// Apply writes the options first: modprobe reads them. When it fails they are put back.
func (a *KmodPresent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	load, options := a.files()
	undo := func() error { return nil }
	var err error
	if a.Persist {
		if undo, err = setText(ctx, h, a.module.optionsFile(), options); err != nil {
			return apply.Output{}, err
		}
	}
	out := apply.Output{}
	if h.IsMachine() {
		if err := a.module.load(ctx, h, a.Options); err != nil {
			return out, place.PutBack(err, undo)
		}
		out.State = "loaded"
	}
	if a.Persist {
		_, err = setText(ctx, h, a.module.loadFile(), load)
	}
	return out, err
}

// kmod is the name of a module as the kernel has it, with underscores.
type kmod string

func newKmod(name string) (kmod, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_+-]*$`).MatchString(name) {
		return "", apply.BadParam("name", "%q is not the name of a kernel module: write one such as br_netfilter", name)
	}
	return kmod(strings.ReplaceAll(name, "-", "_")), nil
}

func (m kmod) loadFile() string { return modulesDir + "/pullet-" + string(m) + ".conf" }

func (m kmod) optionsFile() string { return "/etc/modprobe.d/pullet-" + string(m) + ".conf" }

// loaded asks the kernel. A module that is just coming or going is not loaded.
func (m kmod) loaded() (bool, error) {
	state, err := os.ReadFile("/sys/module/" + string(m) + "/initstate")
	if err == nil {
		return strings.TrimSpace(string(state)) == "live", nil
	}
	if !hostfile.NotThere(err) {
		return false, err
	}
	return m.builtIn()
}

// builtIn reports a module that is part of the kernel: it has a directory without a state, or stands in the kernel's
// own list.
func (m kmod) builtIn() (bool, error) {
	dir := "/sys/module/" + string(m)
	if hostfile.Exists(dir) && !hostfile.Exists(dir+"/initstate") {
		return true, nil
	}
	var un syscall.Utsname
	if err := syscall.Uname(&un); err != nil {
		return false, err
	}
	var release []byte
	for _, c := range un.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	list, err := os.ReadFile(filepath.Join("/lib/modules", string(release), "modules.builtin"))
	if err != nil && !hostfile.NotThere(err) {
		return false, err
	}
	return m.listed(string(list)), nil
}

// listed reports that the module is in a list of paths such as kernel/fs/ext4/ext4.ko.
func (m kmod) listed(paths string) bool {
	for line := range strings.Lines(paths) {
		base, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(line)), ".ko")
		if strings.ReplaceAll(base, "-", "_") == string(m) {
			return true
		}
	}
	return false
}

// load loads the module unless it is loaded.
func (m kmod) load(ctx context.Context, h *apply.Host, options []string) error {
	is, err := m.loaded()
	if err != nil || is {
		return err
	}
	if err := m.modprobe(ctx, h, append([]string{string(m)}, options...)...); err != nil {
		return err
	}
	if is, err = m.loaded(); err == nil && !is {
		err = fmt.Errorf(
			"modprobe succeeded, and no module %s is loaded: name the module itself and not an alias (modprobe -R %s shows it)",
			m,
			m,
		)
	}
	return err
}

func (m kmod) modprobe(ctx context.Context, h *apply.Host, args ...string) error {
	err := h.RunOK(ctx, append([]string{"modprobe"}, args...)...)
	var missing *apply.NoProgramError
	if errors.As(err, &missing) {
		return fmt.Errorf("there is no modprobe on this host: install the package kmod (%w)", err)
	}
	return err
}
