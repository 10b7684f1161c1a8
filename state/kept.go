package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/durable"
)

// ReportLimits say how many reports of runs a node keeps, and how large they may be together. The last one is kept
// whatever its size.
type ReportLimits struct {
	Keep int
	Size int64
}

// ReportFile is the report of a run on the node's disk. A report whose log is still to be sent has a mark beside it.
type ReportFile struct {
	Seq     int       // counts the node's reports: their order holds also when the clock goes back
	Run     string    // not always another one: a pull that waits may correct drift first and upgrade then
	Written time.Time // by the node's clock
	Size    int64
	ToSend  bool

	base string // its path without .json
}

// Reports are the reports that the node keeps, the oldest first.
func Reports(dir string) ([]ReportFile, error) {
	dir = filepath.Join(dir, "reports")
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []ReportFile
	for _, e := range found {
		name, isReport := strings.CutSuffix(e.Name(), ".json")
		number, run, _ := strings.Cut(name, "-")
		seq, err := strconv.Atoi(number)
		if !isReport || err != nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // a pull dropped it just now
			continue
		}
		if err != nil {
			return nil, err
		}
		base := filepath.Join(dir, name)
		_, err = os.Lstat(base + markToSend)
		out = append(
			out,
			ReportFile{Seq: seq, Run: run, Written: info.ModTime(), Size: info.Size(), ToSend: err == nil, base: base},
		)
	}
	slices.SortFunc(out, func(a, b ReportFile) int { return a.Seq - b.Seq })
	return out, nil
}

// Runs are the runs whose reports the node keeps, the newest first.
func Runs(dir string) ([]string, error) {
	all, err := Reports(dir)
	var out []string
	for _, f := range slices.Backward(all) {
		out = append(out, f.Run)
	}
	return slices.Compact(out), err
}

// LoadReport reads a report into v, by its run or its number. Of a run with two reports it is the later one.
func LoadReport(dir, id string, v any) error {
	all, err := Reports(dir)
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(all) {
		if f.Run == id || strconv.Itoa(f.Seq) == id {
			return f.Load(v)
		}
	}
	return fmt.Errorf(
		"there is no report of a run %q on this node: %d are kept in %s; agent.reports says how many: %w",
		id,
		len(all),
		filepath.Join(dir, "reports"),
		fs.ErrNotExist,
	)
}

// DamagedReportError says that a report cannot be read. It goes as it gets old, like the others.
type DamagedReportError struct {
	File string
	Err  error
}

func (e *DamagedReportError) Error() string {
	return fmt.Sprintf("the report %s is damaged: %v; remove it, or leave it: nothing needs it", e.File, e.Err)
}

func (e *DamagedReportError) Unwrap() error { return e.Err }

// Load reads the report into v.
func (f ReportFile) Load(v any) error {
	text, err := os.ReadFile(f.base + ".json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return &DamagedReportError{f.base + ".json", err}
	}
	return nil
}

// SaveReport keeps the report of a run. Older ones make room for it first.
func SaveReport(dir, run string, report any, limits ReportLimits) (ReportFile, error) {
	data, err := json.Marshal(report)
	if err != nil {
		return ReportFile{}, err
	}
	kept := filepath.Join(dir, "reports")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return ReportFile{}, err
	}
	files, err := Reports(dir)
	if err != nil {
		return ReportFile{}, err
	}
	f := ReportFile{Seq: 1, Run: run, Size: int64(len(data))}
	if len(files) > 0 {
		f.Seq = files[len(files)-1].Seq + 1
	}
	f.base = filepath.Join(kept, fmt.Sprintf("%08d-%s", f.Seq, run))
	if err := makeRoom(files, f.Size, limits); err != nil {
		return f, err
	}
	if err := durable.Replace(f.base+".json", append(data, '\n')); err != nil {
		return f, err
	}
	return f, durable.SyncDir(kept)
}

// makeRoom drops the oldest reports until one more of a size is within the limits.
func makeRoom(files []ReportFile, size int64, limits ReportLimits) error {
	for _, f := range files {
		size += f.Size
	}
	for n := len(files); n > 0 && (n >= limits.Keep || size > limits.Size); n-- {
		oldest := files[len(files)-n]
		if err := oldest.Remove(); err != nil {
			return err
		}
		size -= oldest.Size
	}
	return nil
}

// Remove drops the report.
func (f ReportFile) Remove() error { return errors.Join(f.Sent(), os.Remove(f.base+".json")) }

// markToSend ends the name of the mark beside a report whose log is still to be sent.
const markToSend = ".tosend"

// Send marks the report: its log is to be sent.
func (f ReportFile) Send() error { return os.WriteFile(f.base+markToSend, nil, 0o600) }

// Sent takes the mark away.
func (f ReportFile) Sent() error {
	if err := os.Remove(f.base + markToSend); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
