package journal

import "encoding/json"

// Steps of a group become durable together. The order on disk is: the lines of their starts, what they change, the
// record that it is settled. Whoever opens the journal after a crash compares the steps with the host again that ended
// and were not settled: a kill left all of it in place, a power loss may have taken some.

// StartGrouped is Start for a step of a group. Its line is on disk after Sync: nothing may be changed before.
func (j *Journal) StartGrouped(step string, made map[string]Thing) error {
	return j.put(journalLine{Step: step, Made: made})
}

// EndGrouped is End for such a step. Until Settled, only this process believes it.
func (j *Journal) EndGrouped(step string, ok bool, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return j.put(journalLine{Step: step, End: true, OK: ok, Grouped: true, Result: data})
}

// Settled records that what the steps of groups changed that have ended is durable. The record need not be on disk:
// without it the steps are compared with the host again.
func (j *Journal) Settled() error { return j.put(journalLine{Settled: true}) }
