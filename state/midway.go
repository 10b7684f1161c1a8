package state

// Runs reports that a node runs the fleet's version, and is not in the middle of an upgrade: a fleet that went back
// finds nodes that ran its version before, and of which a part is of another one by now.
func (o *Overview) Runs(node string) bool {
	return o.Current != nil && o.Running[node] == o.Current.ID && !o.Midway(node)
}

// Midway reports that a node began an upgrade after it said what it runs, and has not come to its end.
func (o *Overview) Midway(node string) bool {
	if o.holders[node] > o.ran[node] {
		return true
	}
	st := o.Statuses[node][Rollout]
	if st.Revision <= o.ran[node] {
		return false
	}
	switch st.State {
	case Running:
		return true
	case Pending:
		return st.Parked
	case Failed: // in the version that it runs, it is broken, and not half of another
		return st.Version != o.Running[node]
	}
	return false
}
