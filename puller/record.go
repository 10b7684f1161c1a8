package puller

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/renameio/v2"
)

// record is what must outlive a process about one repository. It is the only
// authority on which commit is good; the refs in the store are hints for
// fetching.
type record struct {
	URL    string            `json:"url,omitempty"`    // without secrets
	Follow string            `json:"follow,omitempty"` // Source.follow at the last good head
	Commit string            `json:"commit,omitempty"` // the last good head
	Tag    string            `json:"tag,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"` // followed tag -> commit, to notice a moved one
	// Refused is the latest offer that needs Accept.
	Refused *refusal `json:"refused,omitempty"`
	Rewinds []rewind `json:"rewinds,omitempty"`
	// Seen is when the remote was last seen at the last good head, where that is verified: what is new was not there then.
	Seen time.Time `json:"seen,omitzero"`
	// Verified is what needs no look at its signatures any more.
	Verified verification `json:"verified,omitzero"`
}

type refusal struct {
	Commit string `json:"commit"`
	Tag    string `json:"tag,omitempty"`
}

// rewind is an accepted step that does not follow from history.
type rewind struct {
	Time time.Time `json:"time"`
	From string    `json:"from"`
	To   string    `json:"to"`
	By   string    `json:"by"`
}

// readRecord returns an empty record where there is none yet.
func readRecord(file string) (record, error) {
	var rec record
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, nil
	}
	if err != nil {
		return rec, fmt.Errorf("cannot read the record of a repository: %w", err)
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, damagedRecord(file, err)
	}
	if rec.Commit != "" && !plumbing.IsHash(rec.Commit) {
		return rec, damagedRecord(file, fmt.Errorf("%q is not a full commit id", rec.Commit))
	}
	return rec, nil
}

func damagedRecord(file string, cause error) error {
	return fmt.Errorf(
		"the record %s is damaged: %w: remove it to let the next pull trust whatever the remote offers",
		file,
		cause,
	)
}

// write replaces the record: the old one or the new one survives a crash.
func (rec record) write(file string) error {
	data, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(file, append(data, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return fmt.Errorf("cannot write the record of a repository: %w", err)
	}
	return syncPath(filepath.Dir(file))
}

// setGood makes a commit the last good head. Of a source that follows tags it
// remembers where the tag was, in a new map: records are copied by value.
func (rec *record) setGood(commit, tag string, tagged bool) {
	rec.Commit, rec.Tag, rec.Refused = commit, tag, nil
	if !tagged {
		return
	}
	tags := map[string]string{tag: commit}
	for name, at := range rec.Tags {
		if name != tag {
			tags[name] = at
		}
	}
	rec.Tags = tags
}

// seenEvery is how exactly a record says when the remote was seen: a pull without a change seldom writes.
const seenEvery = time.Hour

// see notes when the remote was seen at the last good head.
func (rec *record) see(when time.Time) {
	if early := when.Before(rec.Seen); early || when.Sub(rec.Seen) >= seenEvery {
		rec.Seen = when.UTC().Truncate(time.Second)
	}
}

// sameRemote reports whether the last good head is what a source follows.
func (rec record) sameRemote(s Source) bool {
	return rec.URL == s.remote().Redacted() && rec.Follow == s.follow()
}

// equal says whether there is nothing to write.
func (rec record) equal(other record) bool { return reflect.DeepEqual(rec, other) }
