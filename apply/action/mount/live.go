package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// planLive compares what is mounted. An entry that had other options speaks for options that the kernel does not show.
func (a *Mounted) planLive(ctx context.Context, h *apply.Host, p *mountPlan, entryDiffers bool) error {
	m, err := mountAt(p.point)
	switch {
	case err != nil:
		return err
	case m == nil:
		p.mount = !onDemand(a.options)
		return nil
	case m.FSType == "autofs" && strings.Contains(a.entry.options, "x-systemd.automount"):
		p.on = m
		return nil
	}
	same, err := a.isDevice(ctx, h, m, p.point)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf(
			"%s (%s) is mounted at %s, and not %s: unmount it first, by hand or by a mount.unmounted step",
			m.Source,
			m.FSType,
			a.entry.dir,
			a.Device,
		)
	}
	p.on = m
	var unseen []string
	if p.remount, unseen, err = a.differs(m, p.point); entryDiffers {
		p.remount = append(p.remount, unseen...)
	}
	return err
}

// isDevice reports that what is mounted is the step's device.
func (a *Mounted) isDevice(ctx context.Context, h *apply.Host, m *mountinfo.Info, point string) (bool, error) {
	device := a.Device
	if a.binds() {
		return sameFile(device, point)
	}
	if tag, _, ok := strings.Cut(device, "="); ok && strings.ToUpper(tag) == tag && !strings.Contains(tag, "/") {
		out, err := h.Run(ctx, apply.Command{Args: []string{"findfs", device}})
		if err != nil {
			return false, err
		}
		if device = strings.TrimSpace(out.StdOut); device == "" { // no disk has it
			return false, nil
		}
	}
	switch {
	case !strings.HasPrefix(device, "/"):
		network := strings.ContainsAny(device, ":/")
		return strings.TrimRight(m.Source, "/") == strings.TrimRight(device, "/") ||
			!network && m.FSType == a.FSType, nil
	case m.Source == device:
		return true, nil
	}
	return isNode(device, m)
}

// isNode reports that a path is the block device that is mounted, or the image behind its loop device.
func isNode(device string, m *mountinfo.Info) (bool, error) {
	info, err := os.Stat(device)
	if hostfile.NotThere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	st, ok := hostfile.Stat(info)
	if ok && info.Mode().Type() == fs.ModeDevice {
		if unix.Mkdev(uint32(m.Major), uint32(m.Minor)) == st.Rdev {
			return true, nil
		}
		on, err := os.Stat(m.Source) // some file systems have a number of their own
		return err == nil && sameNode(st, on), nil
	}
	real, err := filepath.EvalSymlinks(device)
	if err != nil {
		return false, err
	}
	loop, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(m.Source), "loop/backing_file"))
	return err == nil && strings.TrimSuffix(string(loop), "\n") == real, nil
}

func sameNode(st *syscall.Stat_t, info fs.FileInfo) bool {
	other, ok := hostfile.Stat(info)
	return ok && info.Mode().Type() == fs.ModeDevice && other.Rdev == st.Rdev
}

// sameFile reports that two paths lead to one file or directory, as they do when one is bound to the other.
func sameFile(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if hostfile.NotThere(err) {
		return false, nil
	}
	two, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(one, two), errors.Join(err, other)
}

// mountNow mounts, and looks at what became of it.
func (a *Mounted) mountNow(ctx context.Context, h *apply.Host, p mountPlan) error {
	if !hostfile.Exists(p.point) {
		return fmt.Errorf(
			"there is no directory %s: add makeDirs: true, or a file.directory step before this one",
			a.Name,
		)
	}
	args := []string{"mount", "-o", a.entry.options}
	if a.FSType != "auto" && !a.binds() {
		args = append(args, "-t", a.FSType)
	}
	if err := h.RunOK(ctx, append(args, a.Device, p.point)...); err != nil {
		return err
	}
	if err := a.settleBind(ctx, h, p); err != nil {
		return place.PutBack(err, func() error { return h.RunOK(ctx, "umount", p.point) })
	}
	return nil
}

// settleBind gives a bind that was mounted all its flags: which of them mount(8) sets, and which of those of what is
// bound stay beside them, depends on its version.
func (a *Mounted) settleBind(ctx context.Context, h *apply.Host, p mountPlan) error {
	var err error
	if p.on, err = mountAt(p.point); err != nil || p.on == nil || !a.binds() {
		return errors.Join(err, a.verify(p, "mounted"))
	}
	differs, _, err := a.differs(p.on, p.point)
	if err != nil || len(differs) == 0 {
		return err
	}
	return a.remountNow(ctx, h, p)
}

// makePoint makes the mount point: a directory, or a file for a file that is bound.
func (a *Mounted) makePoint(point string) error {
	info, err := os.Stat(a.Device)
	if err != nil || !a.binds() || info.IsDir() {
		return os.MkdirAll(point, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(point), 0o755); err != nil {
		return err
	}
	return os.WriteFile(point, nil, place.NewMode)
}

// remountNow gives a mount the step's options. Every flag is named: what mount(8) keeps of the others depends on its
// version.
func (a *Mounted) remountNow(ctx context.Context, h *apply.Host, p mountPlan) error {
	options := "remount,"
	if a.binds() {
		options += "bind,"
	}
	words, err := a.remountOptions(p.on)
	if err != nil {
		return err
	}
	options += strings.Join(words, ",")
	if err := h.RunOK(ctx, "mount", "-o", options, p.on.Source, p.point); err != nil {
		return err
	}
	return a.verify(p, "remounted")
}

// verify finds what the kernel did not do.
func (a *Mounted) verify(p mountPlan, did string) error {
	m, err := mountAt(p.point)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf(
			"mount(8) succeeded, and nothing is mounted at %s: see journalctl, systemd may have ended it",
			a.Name,
		)
	}
	differs, _, err := a.differs(m, p.point)
	if len(differs) > 0 {
		return fmt.Errorf(
			"%s was %s with %s, and not with %s: the kernel does not allow that; write the options that it has",
			a.Name,
			did,
			m.Options+","+m.VFSOptions,
			strings.Join(differs, ","),
		)
	}
	return err
}
