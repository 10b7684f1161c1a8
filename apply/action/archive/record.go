package archive

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// recordPrefix begins the name of the record that stands in the directory.
const recordPrefix = ".pullet-archive-"

// archiveRecord says what was extracted: with it, comparing needs no archive. It stands in the directory itself, so
// that both come and go together.
type archiveRecord struct {
	Archive string         `json:"archive"`         // the archive's digest
	Strip   int            `json:"strip,omitempty"` // as it was extracted
	Size    int64          `json:"size,omitempty"`  // of an archive on the host, which need not be read again
	Seen    stamp          `json:"seen,omitzero"`   // likewise
	Entries []archiveEntry `json:"entries"`
}

// recordName is the record of a step.
func recordName(step string) string {
	sum := sha256.Sum256([]byte(step))
	return fmt.Sprintf("%s%x.json", recordPrefix, sum[:6])
}

// maxRecord bounds a record.
const maxRecord = 256 << 20

// loadRecord reads a record; nil where there is none that can be trusted. The directory may belong to somebody else:
// what is not the agent's own file, or names paths that lead out, is no record.
func loadRecord(dir *hostfile.Dir, name string) (*archiveRecord, error) {
	at, err := dir.Entry(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Lstat()
	if hostfile.NotThere(err) || err == nil && !trusted(info) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := at.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil || !trusted(now) {
		return nil, err
	}
	var r archiveRecord
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil || json.Unmarshal(data, &r) != nil {
		return nil, err
	}
	for _, e := range r.Entries {
		if p, err := entryPath(e.Path, 0); err != nil || p != e.Path || p == "" {
			return nil, nil
		}
	}
	return &r, nil
}

// trusted reports a record that only the agent can have written.
func trusted(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && hostfile.Owner(info) == os.Geteuid() && info.Mode()&0o022 == 0 &&
		info.Size() <= maxRecord
}

// save writes the record, for the agent alone: it names all files.
func (r *archiveRecord) save(dir *hostfile.Dir, name string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	at, err := dir.Entry(name)
	if err != nil {
		return err
	}
	defer at.Close()
	return place.Put(at, data, hostfile.Attributes{UID: -1, GID: -1, Mode: 0o600, SetMode: true})
}

// stampOf is when a file was touched last.
func stampOf(info fs.FileInfo) stamp {
	st, ok := hostfile.Stat(info)
	if !ok {
		return stamp{}
	}
	return stamp{info.ModTime().UnixNano(), st.Ctim.Nano()}
}

// differences are what is not on the host as the listing has it.
type differences struct {
	place.Tally
	content map[string]bool // the paths that have to be written
}

// compare holds a directory against a listing. What is stale is counted as removed.
func (x *extraction) compare(rec *archiveRecord, old stale) (*differences, error) {
	d := &differences{content: map[string]bool{}}
	for _, e := range rec.Entries {
		summary, content, err := x.compareOne(e, old)
		if err != nil {
			return nil, err
		}
		if content {
			d.content[e.Path] = true
		}
		d.Count(summary, filepath.Join(x.action.Name, e.Path), "")
	}
	d.Remove(x.action.Name, old.onlyRemoved())
	return d, nil
}

// compareOne says what is wrong with one entry, and whether it has to be written.
func (x *extraction) compareOne(e archiveEntry, old stale) (summary string, write bool, err error) {
	if old.clears(e.Path) {
		return "create", true, nil
	}
	at, err := x.dir.Entry(e.Path)
	if err != nil {
		return "", false, err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return "create", true, nil
	case err != nil:
		return "", false, err
	case old.way[e.Path]:
		return "it is " + place.Kind(info) + " of an earlier archive", true, nil
	case e.Kind == aDir && !info.IsDir():
		return "", false, fmt.Errorf(
			"%s is %s, and the archive has a directory there: nothing is written through it; remove it with file.absent first",
			filepath.Join(x.action.Name, e.Path),
			place.Kind(info),
		)
	case e.Kind != aDir && info.IsDir():
		return "", false, fmt.Errorf(
			"%s is a directory with files that are not of an earlier archive, and this one has a %s there: "+
				"remove it with file.absent first",
			filepath.Join(x.action.Name, e.Path),
			e.Kind,
		)
	case e.Kind == aLink && info.Mode()&fs.ModeSymlink == 0, e.Kind == aFile && !info.Mode().IsRegular():
		return "it is " + place.Kind(info), true, nil
	case e.Kind == aLink:
		have, err := at.Readlink()
		if err != nil || have != e.Target {
			return "target " + have + " -> " + e.Target, true, err
		}
	case e.Kind == aFile:
		same, err := sameContent(at, e, info)
		if err != nil || !same {
			return "content", true, err
		}
	}
	return strings.Join(x.wanted(e).Differs(info), ", "), false, nil
}

// sameContent reads a file only where the kernel says that it was touched.
func sameContent(at *hostfile.Entry, e archiveEntry, info fs.FileInfo) (bool, error) {
	if info.Size() != e.Size {
		return false, nil
	}
	if e.Seen != (stamp{}) && e.Seen == stampOf(info) {
		return true, nil
	}
	have, err := fetch.DigestOf(at)
	return have.String() == e.Sum, err
}
