package journal

// Attempt is a node's last attempt at a step that the fleet has on record.
type Attempt struct {
	ID    string
	Began bool // it has no end: nobody knows what came of it
}

// Claim records which attempt at a step the node is about to tell the fleet of, before it does. It is on disk when
// Claim returns.
func (j *Journal) Claim(step, key, attempt string) error {
	return j.append(journalLine{Step: step, Key: key, Attempt: attempt})
}

// Attempt is the last attempt at a step under a key that the node knows of; the zero Attempt where it knows of none, or
// where one succeeded.
func (j *Journal) Attempt(step, key string) Attempt {
	if d := j.done[step]; d.Key == key {
		return Attempt{d.Attempt, d.Began}
	}
	return Attempt{}
}
