package archive

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"path/filepath"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Extracted is a directory that holds what an archive holds: tar, alone or with gzip, bzip2, xz or zstd, or zip. The
// format is told from the content. What else is in the directory stays; files of an earlier archive of the same step
// go, unless somebody changed them. So a file of it can become a directory or a link, and a directory a file.
//
// Comparing is exact and reads little: a record of what was extracted stands in the directory (.pullet-archive-*).
// Without it the archive is read through and compared; one at an address is then extracted again, as comparing never
// uses the network. What was changed by hand is extracted again. With creates, that path alone is looked at.
//
// An archive that would write elsewhere is refused as a whole, before anything is written: absolute names, names with
// "..", links that lead out, hard links to what it does not hold, devices. Nothing is written through a link. Files
// belong to the agent's own user, unless owner and group say otherwise; setuid, setgid and sticky bits are dropped.
//
// Example:
//
//	steps:
//	  - name: exporter
//	    action: archive.extracted
//	    parameters:
//	      name: /opt/exporter
//	      source: https://downloads.example.org/exporter-1.8.linux-amd64.tar.gz
//	      digest: sha256:1b4f0e9851971998e732078544c96b36c3d01cedf7caa332359d6f1d83567014
//	      strip: 1
type Extracted struct {
	Name string `yaml:"name,required"` // absolute path of the directory; it is made with its parents
	// a file below files/, an absolute path on the host, or an address (https://...)
	Source            string `yaml:"source,required"`
	Digest            string `yaml:"digest"` // of the archive: sha256:...; required for an address
	Strip             int    `yaml:"strip"`  // leave out so many leading elements of the names in it; default 0
	place.Permissions `yaml:",inline"`
	place.TreeModes   `yaml:",inline"`
	Creates           string `yaml:"creates"` // extract only when this path does not exist, and compare nothing else

	step   string
	data   []byte        // of a file below files/
	remote *fetch.File   // at an address
	want   *fetch.Digest // of one on the host, where it is given
}

// Bind reads an archive of the repository, and checks the parameters.
func (a *Extracted) Bind(b apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if a.Creates != "" {
		if err := apply.AbsPath("creates", a.Creates); err != nil {
			return err
		}
	}
	for _, check := range []func() error{a.Permissions.CheckMode, a.TreeModes.CheckModes} {
		if err := check(); err != nil {
			return err
		}
	}
	switch {
	case filepath.Clean(a.Name) == "/":
		return apply.BadParam("name", "an archive is not extracted over the whole system")
	case a.Strip < 0 || a.Strip > 100:
		return apply.BadParam("strip", "%d is not between 0 and 100", a.Strip)
	}
	a.step = b.Step.ID()
	return a.source(b)
}

// source finds out where the archive is.
func (a *Extracted) source(b apply.Binding) (err error) {
	switch {
	case fetch.IsAddress(a.Source):
		a.remote, err = fetch.New(a.Source, a.Digest)
		return err
	case a.Digest != "":
		sum, err := fetch.ParseDigest(a.Digest)
		if err != nil {
			return err
		}
		a.want = &sum
	}
	if filepath.IsAbs(a.Source) {
		return nil
	}
	if a.data, err = b.Source(a.Source, false); err != nil {
		return err
	}
	if have := fetch.Digest(sha256.Sum256(a.data)); a.want != nil && *a.want != have {
		return apply.BadParam("digest", "files/%s has %s", a.Source, have)
	}
	return nil
}

// Manages is the directory: what was extracted is not removed.
func (a *Extracted) Manages() []apply.Resource {
	return []apply.Resource{{ID: "archive in " + path.Clean(a.Name), Fills: path.Clean(a.Name)}}
}

// Check compares the directory with the record of what was extracted, or with the archive.
func (a *Extracted) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	if done, err := a.created(h); err != nil || done {
		return apply.Change{}, err
	}
	x, err := a.extraction(h)
	if err != nil {
		return apply.Change{}, err
	}
	defer x.close()
	p, err := x.plan(ctx, h)
	if err != nil {
		return apply.Change{}, err
	}
	return p.change(), nil
}

func (a *Extracted) created(h *apply.Host) (bool, error) {
	if a.Creates == "" {
		return false, nil
	}
	return place.Stands(h, a.Creates)
}

// extraction is the archive's way into the directory on this host. A link in its place is followed, beneath the root.
func (a *Extracted) extraction(h *apply.Host) (*extraction, error) {
	w, err := a.Permissions.Tree(h, a.TreeModes)
	if err != nil {
		return nil, err
	}
	root, err := h.Follow(a.Name)
	if err != nil {
		return nil, err
	}
	x := &extraction{action: a, root: root, w: w, limits: archiveLimits{entries: 1_000_000, bytes: 64 << 30}}
	if root.IsDir() {
		x.dir, err = root.Dir()
	} else if root.Exists() {
		err = fmt.Errorf("%s is not a directory: remove it with file.absent first", a.Name)
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// extractPlan is what is to be done.
type extractPlan struct {
	old     *archiveRecord // what was extracted last
	current *archiveRecord // what shall be there, as far as it is known
	again   bool           // the archive has to be read, and nothing tells how far
	stale   stale          // of old
	diff    *differences
}

func (p *extractPlan) change() apply.Change {
	switch {
	case p.again:
		return apply.Change{Summary: "extract"}
	case p.old == p.current:
		return p.diff.Change()
	}
	c := p.diff.Change()
	if c.Summary != "" {
		c.Summary = "extract: " + c.Summary
	}
	return c
}

// plan compares. It uses the record of this very archive, or the archive where it is at hand.
func (x *extraction) plan(ctx context.Context, h *apply.Host) (*extractPlan, error) {
	p := &extractPlan{}
	var err error
	if p.old, err = loadRecord(x.dir, recordName(x.action.step)); err != nil {
		return nil, err
	}
	is, err := x.isOf(h, p.old)
	if err != nil {
		return nil, err
	}
	if is {
		p.current = p.old
	} else {
		from, err := x.local(h)
		if err != nil || from == nil {
			p.again = true
			return p, err
		}
		defer from.done()
		if p.current, err = x.scan(ctx, *from); err != nil {
			return nil, x.failed(err)
		}
	}
	return p, x.against(p)
}

// against compares the directory with what shall be there.
func (x *extraction) against(p *extractPlan) (err error) {
	if p.stale, err = x.stale(p.current, p.old); err == nil {
		p.diff, err = x.compare(p.current, p.stale)
	}
	return err
}

// isOf reports a record of the archive that is wanted. An archive on the host that was not touched is not read; one
// that is gone has done its work.
func (x *extraction) isOf(h *apply.Host, r *archiveRecord) (bool, error) {
	switch {
	case r == nil || r.Strip != x.action.Strip:
		return false, nil
	case x.action.remote != nil:
		return r.Archive == x.action.remote.Digest.String(), nil
	case x.action.want != nil:
		return r.Archive == x.action.want.String(), nil
	case !filepath.IsAbs(x.action.Source):
		return r.Archive == fetch.Digest(sha256.Sum256(x.action.data)).String(), nil
	}
	at, err := h.Follow(x.action.Source)
	if err != nil {
		return false, err
	}
	defer at.Close()
	info, err := at.Lstat()
	if hostfile.NotThere(err) {
		return true, nil
	}
	if err != nil || r.Size == info.Size() && r.Seen == stampOf(info) {
		return err == nil, err
	}
	have, err := fetch.DigestOf(at)
	return have.String() == r.Archive, err
}

// Apply extracts what is missing or different.
func (a *Extracted) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	x, err := a.extraction(h)
	if err != nil {
		return apply.Output{}, err
	}
	defer x.close()
	if err := x.w.Dir.Known(); err != nil {
		return apply.Output{}, err
	}
	return apply.Output{}, x.run(ctx, h)
}

func (x *extraction) run(ctx context.Context, h *apply.Host) error {
	p, err := x.plan(ctx, h)
	if err != nil {
		return err
	}
	if p.again || len(p.diff.content) > 0 {
		from, err := x.open(ctx, h)
		if err != nil {
			return err
		}
		defer from.done()
		if p.current, err = x.scan(ctx, *from); err != nil {
			return x.failed(err)
		}
		if err := x.against(p); err != nil {
			return err
		}
		if err := x.write(ctx, *from, p); err != nil {
			return x.failed(err)
		}
	}
	return x.finish(p)
}

func (x *extraction) failed(err error) error {
	name := x.action.Source
	if x.action.remote != nil {
		name = x.action.remote.String()
	}
	return fmt.Errorf("%s: %w", name, err)
}
