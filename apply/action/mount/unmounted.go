package mount

import (
	"context"
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
)

// Unmounted is a directory where nothing is mounted, now and after the next boot. What is in use is not unmounted, and
// the step fails. Several mounts on one another are all unmounted. Below another root only the entry of /etc/fstab is
// removed.
//
// Example:
//
//	steps:
//	  - name: no old data
//	    action: mount.unmounted
//	    parameters: {name: /srv/old}
type Unmounted struct {
	Name    string `yaml:"name,required"` // the mount point, an absolute path
	Persist bool   `yaml:"persist"`       // remove its entry from /etc/fstab too; default true
}

// Bind checks the mount point.
func (a *Unmounted) Bind(apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if cleanDir(a.Name) == "/" {
		return apply.BadParam("name", "the root cannot be unmounted")
	}
	return nil
}

// Check looks for a mount and an entry.
func (a *Unmounted) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	var parts []string
	if h.IsMachine() {
		m, err := a.mounted(h)
		if err != nil {
			return apply.Change{}, err
		}
		if m != nil {
			parts = append(parts, "unmount "+m.Source)
		}
	}
	file, err := place.ReadText(h, fstabPath)
	if err != nil {
		return apply.Change{}, err
	}
	text := withoutFstab(file.Text, cleanDir(a.Name))
	if !a.Persist || text == file.Text {
		return apply.Change{Summary: strings.Join(parts, ", ")}, nil
	}
	return apply.Change{
		Summary: strings.Join(append(parts, "remove from /etc/fstab"), ", "),
		Diff:    file.Diff(text),
	}, nil
}

// mounted is what is mounted there; nil is nothing.
func (a *Unmounted) mounted(h *apply.Host) (*mountinfo.Info, error) {
	point, err := h.Resolve(a.Name)
	if err != nil {
		return nil, err
	}
	return mountAt(point)
}

// Apply unmounts what is there and then removes the entry.
func (a *Unmounted) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	unlock, err := h.Lock(ctx, fstabPath)
	if err != nil {
		return apply.Output{}, err
	}
	defer unlock()
	if h.IsMachine() {
		if err := a.unmountAll(ctx, h); err != nil {
			return apply.Output{}, err
		}
	}
	if !a.Persist {
		return apply.Output{}, nil
	}
	file, err := place.ReadText(h, fstabPath)
	if err != nil {
		return apply.Output{}, err
	}
	_, err = writeFstab(ctx, h, file, withoutFstab(file.Text, cleanDir(a.Name)))
	return apply.Output{}, err
}

// unmountAll ends when nothing is mounted, or when what is mounted stays.
func (a *Unmounted) unmountAll(ctx context.Context, h *apply.Host) error {
	for last := -1; ; {
		m, err := a.mounted(h)
		switch {
		case err != nil || m == nil:
			return err
		case m.ID == last:
			return fmt.Errorf("umount(8) succeeded, and %s is still mounted at %s", m.Source, a.Name)
		}
		if err := h.RunOK(ctx, "umount", m.Mountpoint); err != nil {
			return fmt.Errorf("%w (fuser -vm %s shows who uses it)", err, a.Name)
		}
		last = m.ID
	}
}
