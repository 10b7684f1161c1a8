package journal

import (
	"maps"
	"slices"
)

// progress is what is on record of the run in progress, or of the one that was cut off.
type progress struct {
	head    journalLine
	steps   map[string]journalLine // by step
	grouped []string               // steps of groups whose end is not settled
	doubted map[string]journalLine // those of a process that was cut off, with their ends: they start again
}

// Resumes reports that a run for this version and catalog goes on with the unfinished one.
func (p *progress) Resumes(version, digest string) bool {
	return p.head.Run != "" && p.head.Version == version && p.head.Digest == digest
}

// Unfinished names the run that was cut off, and its version; empty when there is none.
func (p *progress) Unfinished() (run, version string) { return p.head.Run, p.head.Version }

// Ended reports whether the run in progress has a successful end of a step on record, and reads its result.
func (p *progress) Ended(step string, result any) bool {
	return p.steps[step].ended(result)
}

// CutOff reports a step that was started and has no end on record.
func (p *progress) CutOff(step string) bool {
	line, ok := p.steps[step]
	return ok && !line.End
}

// Open reports a step whose action succeeded and whose conditions after it are still asked for.
func (p *progress) Open(step string) bool { return p.steps[step].Key == OpenStep }

// Making is what a step was going to make that has no end on record.
func (p *progress) Making(step string) []string {
	if line := p.steps[step]; !line.End {
		return slices.Sorted(maps.Keys(line.Made))
	}
	return nil
}

// Made is what the steps of the run were going to make. Of a run that was abandoned it is nothing: that was undone.
func (p *progress) Made() map[string]Thing {
	out := map[string]Thing{}
	for _, line := range p.steps {
		if p.head.Digest != abandoned {
			maps.Copy(out, line.Made)
		}
	}
	return out
}

// Boots reports a step of the run in progress behind which the host boots, or booted.
func (p *progress) Boots(step string) bool { return p.steps[step].Boot != "" }

// Doubt takes back the ends that are not settled: those steps count as cut off. It comes before a run begins.
func (p *progress) Doubt() {
	p.doubted = map[string]journalLine{}
	for _, step := range p.grouped {
		if line := p.steps[step]; line.Grouped {
			p.steps[step] = journalLine{Step: step, Made: line.Made}
			p.doubted[step] = line
		}
	}
	p.grouped = nil
}

// Doubted reports a step that ended well and was not settled, and reads its result: it holds if the host is as the step
// left it.
func (p *progress) Doubted(step string, result any) bool {
	return p.doubted[step].ended(result)
}
