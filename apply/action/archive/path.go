package archive

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// The kinds of what an archive holds.
const (
	aFile = "file"
	aDir  = "directory"
	aLink = "symbolic link"
	aHard = "hard link" // another name of a file of the archive; on record it is a file
)

// archiveEntry is one thing in an archive. Its path is relative to where it is extracted, clean, and leads nowhere
// else.
type archiveEntry struct {
	Path   string      `json:"path"`
	Kind   string      `json:"kind"`
	Mode   fs.FileMode `json:"mode,omitempty"`   // who may do what; no setuid, setgid and sticky bits
	Size   int64       `json:"size,omitempty"`   // of a file
	Sum    string      `json:"sum,omitempty"`    // of a file's content
	Target string      `json:"target,omitempty"` // what a link says, or the path of the file that a hard link is
	Seen   stamp       `json:"seen,omitzero"`    // of the file as it was written

	time time.Time
}

// recordedEntry is an entry as JSON has it, which keeps only texts in UTF-8: names in archives may be in any encoding.
type recordedEntry struct {
	*plainEntry
	RawPath   []byte `json:"rawPath,omitempty"`
	RawTarget []byte `json:"rawTarget,omitempty"`
}

type plainEntry archiveEntry

// MarshalJSON keeps the bytes of names that are not in UTF-8.
func (e archiveEntry) MarshalJSON() ([]byte, error) {
	r := recordedEntry{plainEntry: (*plainEntry)(&e)}
	if !utf8.ValidString(e.Path) {
		r.RawPath = []byte(e.Path)
	}
	if !utf8.ValidString(e.Target) {
		r.RawTarget = []byte(e.Target)
	}
	return json.Marshal(r)
}

// UnmarshalJSON is the reverse of MarshalJSON.
func (e *archiveEntry) UnmarshalJSON(data []byte) error {
	r := recordedEntry{plainEntry: (*plainEntry)(e)}
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.RawPath != nil {
		e.Path = string(r.RawPath)
	}
	if r.RawTarget != nil {
		e.Target = string(r.RawTarget)
	}
	return nil
}

// stamp tells whether a file was touched: the kernel moves the second one at every change.
type stamp struct {
	Modified int64 `json:"modified"`
	Changed  int64 `json:"changed"`
}

// maxArchivePath bounds a name in an archive.
const maxArchivePath = 4096

// entryPath is the path of a name in an archive without its first elements; "" is nothing. What would lead out is
// refused.
func entryPath(name string, strip int) (string, error) {
	switch {
	case len(name) > maxArchivePath:
		return "", fmt.Errorf("a name of %d bytes is longer than %d", len(name), maxArchivePath)
	case strings.ContainsAny(name, "\x00\n"):
		return "", fmt.Errorf("%q: a name with a zero byte or a line's end", name)
	case strings.HasPrefix(name, "/"):
		return "", fmt.Errorf("%q is an absolute name: it would lead out of the directory", name)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", fmt.Errorf("%q has .. in it: it may lead out of the directory", name)
		default:
			parts = append(parts, part)
		}
		if strings.HasPrefix(part, recordPrefix) {
			return "", fmt.Errorf("%q: names that begin with %s are kept for pullet", name, recordPrefix)
		}
	}
	if len(parts) <= strip {
		return "", nil
	}
	return strings.Join(parts[strip:], "/"), nil
}

// checkLink refuses a link that may lead out. Links stand in real directories, since nothing is written through a link.
// So a target that climbs first and descends afterwards cannot leave; one that climbs again, behind a name, could: that
// name may be a link.
func checkLink(at, target string) error {
	if target == "" || len(target) > maxArchivePath || strings.ContainsRune(target, 0) {
		return fmt.Errorf("%s: a symbolic link to nothing that can be", at)
	}
	if strings.HasPrefix(target, "/") {
		return fmt.Errorf("%s is a symbolic link to %s, out of the directory", at, target)
	}
	depth, descended := strings.Count(at, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
			if depth < 0 || descended {
				return fmt.Errorf("%s is a symbolic link to %s, which may lead out of the directory", at, target)
			}
		default:
			descended = true
		}
	}
	return nil
}

// archiveListing is what an archive holds, by path, with the directories that it needs but does not name.
type archiveListing struct {
	entries []archiveEntry // parents before what is in them
	byPath  map[string]int
}

func newListing() *archiveListing { return &archiveListing{byPath: map[string]int{}} }

// add takes an entry in. A later one of the same path counts, as it does when an archive is extracted one by one.
func (l *archiveListing) add(e archiveEntry) error {
	for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
		i, known := l.byPath[dir]
		if known && l.entries[i].Kind != aDir {
			return fmt.Errorf("%s lies below %s, which is a %s in the archive", e.Path, dir, l.entries[i].Kind)
		}
	}
	if e.Kind == aHard {
		i, known := l.byPath[e.Target]
		if !known || l.entries[i].Kind != aFile {
			return fmt.Errorf(
				"%s is a hard link to %s, which is no file that stands before it in the archive",
				e.Path,
				e.Target,
			)
		}
		file := l.entries[i]
		e.Kind, e.Target, e.Mode, e.Size, e.Sum = aFile, "", file.Mode, file.Size, file.Sum
	}
	if i, known := l.byPath[e.Path]; known {
		if (l.entries[i].Kind == aDir) != (e.Kind == aDir) {
			return fmt.Errorf("%s is a directory in the archive, and something else too", e.Path)
		}
		l.entries[i] = e
		return nil
	}
	l.parents(e.Path)
	l.put(e)
	return nil
}

// parents adds the directories above a path that the archive does not name, or names later.
func (l *archiveListing) parents(p string) {
	dir := path.Dir(p)
	if _, known := l.byPath[dir]; known || dir == "." {
		return
	}
	l.parents(dir)
	l.put(archiveEntry{Path: dir, Kind: aDir, Mode: 0o755})
}

func (l *archiveListing) put(e archiveEntry) {
	l.byPath[e.Path] = len(l.entries)
	l.entries = append(l.entries, e)
}
