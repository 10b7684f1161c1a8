package mount

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/moby/sys/mountinfo"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/render"
)

// Mounted is a file system that is mounted here, now and after the next boot. Swap is not mounted, and is not for this
// action.
//
// Now: what is not mounted is mounted by mount(8), unless its options have noauto. A mount with other options is
// remounted: ro, nosuid, nodev, noexec, the kinds of atime, and size and nr_inodes of a tmpfs are compared with the
// kernel's table. Of these a bind has what its options say, and else what is bound has; every other mount has what its
// options say, and else the defaults of mount(8). Other options are used when the file system is mounted, and by a
// remount when its entry in /etc/fstab had others. Where something else is
// mounted the step fails: nothing is unmounted by force. A mount point that systemd mounts on demand
// (x-systemd.automount) counts as mounted. Below another root nothing is mounted, and the boot does this.
//
// At boot: /etc/fstab has one entry for the mount point; other lines and comments stay as they are. systemd is told of
// the change. When the mount fails, /etc/fstab stays as it was.
//
// Example:
//
//	steps:
//	  - name: data
//	    action: mount.mounted
//	    parameters:
//	      name: /srv/data
//	      device: UUID=0a3407de-014b-458b-b5c1-848e92a327a3
//	      fstype: ext4
//	      options: [noatime, nofail]
//	      pass: 2
//	      makeDirs: true
//	  - name: web content
//	    action: mount.mounted
//	    parameters:
//	      name: /var/www/data
//	      device: /srv/data/www
//	      options: [bind, ro]
type Mounted struct {
	Name string `yaml:"name,required"` // the mount point, an absolute path
	// a device, UUID=, LABEL=, host:/path, an image, a directory to bind, or tmpfs
	Device   string         `yaml:"device,required"`
	FSType   string         `yaml:"fstype"`   // as mount -t has it, and none for a bind; default auto
	Options  render.Strings `yaml:"options"`  // as mount -o has them: a list, or one text with commas; none: defaults
	Dump     int            `yaml:"dump"`     // the fifth field of /etc/fstab
	Pass     int            `yaml:"pass"`     // the order of checks at boot: 0 is none, 1 the root, 2 the others
	Persist  bool           `yaml:"persist"`  // keep the entry in /etc/fstab; false leaves the file alone; default true
	MakeDirs bool           `yaml:"makeDirs"` // make the mount point and its parents, mode 0755

	entry   fstabEntry
	options []string
}

// Bind makes the entry of /etc/fstab.
func (a *Mounted) Bind(apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	a.options = splitOptions(strings.Join(a.Options, ","))
	if err := checkOptions(a.options); err != nil {
		return err
	}
	switch {
	case a.Device == "" || strings.HasPrefix(a.Device, "-"):
		return apply.BadParam("device", "%q is not a device", a.Device)
	case a.FSType == "" || strings.HasPrefix(a.FSType, "-") || strings.ContainsFunc(a.FSType, unicode.IsSpace):
		return apply.BadParam("fstype", "%q is not a type of file systems", a.FSType)
	case a.FSType == "none" && !a.binds():
		return apply.BadParam("fstype", "none is the type of a bind; add bind to the options, or give the type")
	case a.FSType == "auto" && !strings.ContainsAny(a.Device, "/:="):
		return apply.BadParam("fstype", "is missing: %q is no disk that could tell its type", a.Device)
	case a.FSType == "swap":
		return apply.BadParam("fstype", "swap is not mounted, and is not for this action")
	case strings.ContainsFunc(a.Device+a.FSType+a.Name, unicode.IsControl):
		return apply.BadParam("device", "neither name, device nor fstype may have a control character")
	case strings.TrimSpace(a.Device) != a.Device || strings.TrimSpace(a.Name) != a.Name:
		return apply.BadParam("device", "neither name nor device may begin or end with a blank")
	case onDemand(a.options) && !a.Persist:
		return apply.BadParam("persist", "noauto leaves nothing to do but the entry in /etc/fstab; keep it")
	case a.Dump < 0 || a.Pass < 0:
		return apply.BadParam("pass", "dump and pass are not negative")
	}
	fstype := a.FSType
	if fstype == "auto" && a.binds() {
		fstype = "none"
	}
	a.entry = fstabEntry{a.Device, cleanDir(a.Name), fstype, strings.Join(a.options, ","), a.Dump, a.Pass}
	return nil
}

func (a *Mounted) binds() bool { return bindsAny(a.options) }

// mountPlan is what is to be done for a mount.
type mountPlan struct {
	point   string // the mount point on this machine
	makeDir bool
	mount   bool
	on      *mountinfo.Info // what is mounted already; nil is nothing
	remount []string        // options that it does not have
	fstab   place.Text
	text    string // of fstab
	stale   bool   // fstab has another device for the mount point
}

// plan compares everything with the host.
func (a *Mounted) plan(ctx context.Context, h *apply.Host) (mountPlan, error) {
	p := mountPlan{}
	var err error
	if p.point, err = h.Resolve(a.Name); err != nil {
		return p, err
	}
	if p.fstab, err = place.ReadText(h, fstabPath); err != nil {
		return p, err
	}
	p.text = p.fstab.Text
	have := a.entry // a file that is left alone is as good as right
	if a.Persist {
		if p.text, have, err = setFstab(p.fstab.Text, a.entry); err != nil {
			return p, err
		}
	}
	p.stale = have.dir != "" && have.device != a.Device
	if h.IsMachine() {
		if err := a.planLive(ctx, h, &p, have.options != a.entry.options); err != nil {
			return p, err
		}
	}
	p.makeDir = a.MakeDirs && !hostfile.Exists(p.point)
	return p, nil
}

// Manages is the mount.
func (a *Mounted) Manages() []apply.Resource {
	return []apply.Resource{apply.NamedResource("mount", path.Clean(a.Name), "mount.unmounted")}
}

// Check compares the kernel's table and /etc/fstab.
func (a *Mounted) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	p, err := a.plan(ctx, h)
	if err != nil {
		return apply.Change{}, err
	}
	var parts []string
	if p.makeDir {
		parts = append(parts, "make the directory")
	}
	if p.mount {
		parts = append(parts, "mount")
	}
	if len(p.remount) > 0 {
		parts = append(parts, "remount with "+strings.Join(p.remount, ","))
	}
	if p.text == p.fstab.Text {
		return apply.Change{Summary: strings.Join(parts, ", ")}, nil
	}
	return apply.Change{
		Summary: strings.Join(append(parts, "entry in /etc/fstab"), ", "),
		Diff:    p.fstab.Diff(p.text),
	}, nil
}

// Apply mounts before it writes /etc/fstab, unless that has another device: systemd would know the mount point by the
// old entry, and end what is mounted there when the old device is gone.
func (a *Mounted) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, fstabPath)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	p, err := a.plan(ctx, h)
	if err != nil {
		return apply.Output{}, err
	}
	undo := func() error { return nil }
	if p.makeDir {
		if err := a.makePoint(p.point); err != nil {
			return apply.Output{}, err
		}
		undo = func() error { return os.Remove(p.point) }
	}
	if p.mount && p.stale {
		err = a.replaceDevice(ctx, h, p)
	} else if err = a.setNow(ctx, h, p); err == nil {
		_, err = writeFstab(ctx, h, p.fstab, p.text)
		undo = func() error { return nil } // it is mounted
	}
	if err != nil {
		return apply.Output{}, place.PutBack(err, undo)
	}
	return apply.Output{State: p.state(h)}, nil
}

// setNow mounts or remounts, where that is to be done.
func (a *Mounted) setNow(ctx context.Context, h *apply.Host, p mountPlan) error {
	switch {
	case p.mount:
		return a.mountNow(ctx, h, p)
	case len(p.remount) > 0:
		return a.remountNow(ctx, h, p)
	}
	return nil
}

// replaceDevice mounts after the entry was replaced, which is put back when that fails.
func (a *Mounted) replaceDevice(ctx context.Context, h *apply.Host, p mountPlan) error {
	undo, err := writeFstab(ctx, h, p.fstab, p.text)
	if err != nil {
		return err
	}
	if err := a.mountNow(ctx, h, p); err != nil {
		return place.PutBack(err, undo)
	}
	return nil
}

// state is "mounted" after the plan was carried out, unless nothing is mounted.
func (p mountPlan) state(h *apply.Host) string {
	if h.IsMachine() && (p.mount || p.on != nil) {
		return "mounted"
	}
	return ""
}

// writeFstab replaces /etc/fstab and lets systemd read it.
func writeFstab(ctx context.Context, h *apply.Host, file place.Text, text string) (undo func() error, err error) {
	if text == file.Text {
		return func() error { return nil }, nil
	}
	back, err := file.Replace(ctx, h, text)
	if err != nil {
		return nil, err
	}
	undo = func() error {
		// What was asked to stop still puts things back.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(back(), reloadSystemd(ctx, h))
	}
	if err := reloadSystemd(ctx, h); err != nil {
		return nil, place.PutBack(err, undo)
	}
	return undo, nil
}

// reloadSystemd makes systemd's units of /etc/fstab anew, where it is this machine's.
func reloadSystemd(ctx context.Context, h *apply.Host) error {
	if !h.IsMachine() || !hostfile.Exists("/run/systemd/system") {
		return nil
	}
	return h.RunOK(ctx, "systemctl", "daemon-reload")
}
