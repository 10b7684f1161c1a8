package agent

// door is a lock that is kept while etcd is asked. It is a channel because in virtual time only a wait on a channel
// lets the clock go on.
type door chan struct{}

func newDoor() door { return make(door, 1) }

func (d door) Lock() { d <- struct{}{} }

func (d door) Unlock() { <-d }

func (d door) TryLock() bool {
	select {
	case d <- struct{}{}:
		return true
	default:
		return false
	}
}
