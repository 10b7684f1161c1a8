package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// KmodAbsent is a module of the kernel that is not loaded, neither now nor by name at the next boot. It is unloaded by
// modprobe -r; one that is in use, or built into the kernel, stays, and the step fails. Lines that load it go from
// /etc/modules and /etc/modules-load.d; what packages have in /usr/lib/modules-load.d stays. Below another root only
// these files change.
//
// Without blacklist a device or another module can still bring it in. With it, /etc/modprobe.d/pullet-NAME.conf keeps
// modprobe from loading it at all. An image of the early boot (initramfs) is not made anew.
//
// Example:
//
//	steps:
//	  - name: no rare protocols
//	    action: kmod.absent
//	    parameters: {name: dccp, blacklist: true}
type KmodAbsent struct {
	Name      string `yaml:"name,required"` // of the module
	Blacklist bool   `yaml:"blacklist"`     // keep it from being loaded by anything

	module kmod
}

// Bind checks the name.
func (a *KmodAbsent) Bind(apply.Binding) (err error) {
	a.module, err = newKmod(a.Name)
	return err
}

// blacklist is the text of the module's file below modprobe.d; "" is no file.
func (a *KmodAbsent) blacklist() string {
	if !a.Blacklist {
		return ""
	}
	return fmt.Sprintf("blacklist %s\ninstall %s /bin/false\n", a.module, a.module)
}

// Check looks at the kernel and the files.
func (a *KmodAbsent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	var parts []string
	if h.IsMachine() {
		is, err := a.module.loaded()
		if err != nil {
			return apply.Change{}, err
		}
		if is {
			parts = append(parts, "unload")
		}
	}
	want := []wantText{{a.module.optionsFile(), a.blacklist(), "blacklist"}}
	if !a.Blacklist {
		want[0].what = "remove " + want[0].name
	}
	boot, err := a.module.withoutLoading(h)
	if err != nil {
		return apply.Change{}, err
	}
	return a.module.compare(h, parts, append(want, boot...)...)
}

// Apply unloads the module when nothing can bring it in again.
func (a *KmodAbsent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, modulesPath)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	undo, err := setText(ctx, h, a.module.optionsFile(), a.blacklist())
	if err != nil {
		return apply.Output{}, err
	}
	if h.IsMachine() {
		if err := a.module.unload(ctx, h); err != nil {
			return apply.Output{}, place.PutBack(err, undo)
		}
	}
	boot, err := a.module.withoutLoading(h)
	if err != nil {
		return apply.Output{}, err
	}
	for _, w := range boot {
		if _, err := setText(ctx, h, w.name, w.text); err != nil {
			return apply.Output{}, err
		}
	}
	return apply.Output{}, nil
}

func (m kmod) unload(ctx context.Context, h *apply.Host) error {
	is, err := m.loaded()
	if err != nil || !is {
		return err
	}
	built, err := m.builtIn()
	if err != nil {
		return err
	}
	if built {
		return fmt.Errorf("%s is built into this kernel and cannot be unloaded", m)
	}
	return m.modprobe(ctx, h, "-r", string(m))
}

// withoutLoading are the files that load the module at boot, as they should be.
func (m kmod) withoutLoading(h *apply.Host) ([]wantText, error) {
	dir, err := h.Resolve(modulesDir)
	if err != nil {
		return nil, err
	}
	found, err := os.ReadDir(dir)
	if err != nil && !hostfile.NotThere(err) {
		return nil, err
	}
	names := []string{modulesPath}
	for _, e := range found {
		if filepath.Ext(e.Name()) == ".conf" && !e.IsDir() {
			names = append(names, filepath.Join(modulesDir, e.Name()))
		}
	}
	var out []wantText
	for _, name := range names {
		file, err := place.ReadText(h, name)
		if err != nil {
			return nil, err
		}
		text := m.withoutLines(file.Text)
		if text == file.Text {
			continue
		}
		if name != m.loadFile() && text == "" {
			text = "\n" // a file that is somebody else's stays
		}
		out = append(out, wantText{name, text, "remove from " + name})
	}
	return out, nil
}

// withoutLines leaves out the lines that load the module.
func (m kmod) withoutLines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "")
		if strings.ReplaceAll(words[0], "-", "_") != string(m) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// wantText is a file that is this text as a whole; "" is no file.
type wantText struct{ name, text, what string }

// compare adds what of the files is not as wanted.
func (m kmod) compare(h *apply.Host, parts []string, want ...wantText) (apply.Change, error) {
	diff := ""
	for _, w := range want {
		file, err := place.ReadText(h, w.name)
		if err != nil {
			return apply.Change{}, err
		}
		if file.Text != w.text || file.There && w.text == "" {
			parts, diff = append(parts, w.what), diff+file.Diff(w.text)
		}
	}
	return apply.Change{Summary: strings.Join(parts, ", "), Diff: diff}, nil
}

// setText makes a file this text; "" removes it.
func setText(ctx context.Context, h *apply.Host, name, text string) (undo func() error, err error) {
	file, err := place.ReadText(h, name)
	switch {
	case err != nil:
		return nil, err
	case text == "":
		return file.Remove(ctx, h)
	}
	return file.Replace(ctx, h, text)
}
