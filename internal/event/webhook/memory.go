package webhook

import (
	"crypto/sha256"
	"sync"
	"time"
)

// How long and how many deliveries a hook remembers. Only who has the secret can fill it.
const (
	rememberFor = 24 * time.Hour
	maxMemory   = 10_000
)

// memory are the deliveries that a hook has taken, the oldest ones first.
type memory struct {
	mu    sync.Mutex
	seen  map[[sha256.Size]byte]time.Time
	order []taken
}

type taken struct {
	id [sha256.Size]byte
	at time.Time
}

// take remembers what a delivery is known by; false: one of it was seen before, and nothing is remembered.
func (m *memory) take(ids []string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[[sha256.Size]byte]time.Time{}
	}
	m.drop(func(t taken) bool { return now.Sub(t.at) >= rememberFor })
	for _, id := range ids {
		if _, known := m.seen[sha256.Sum256([]byte(id))]; known {
			return false
		}
	}
	for _, id := range ids {
		one := taken{sha256.Sum256([]byte(id)), now}
		m.seen[one.id] = now
		m.order = append(m.order, one)
	}
	m.drop(func(taken) bool { return len(m.order) > maxMemory })
	return true
}

// drop forgets the oldest ones.
func (m *memory) drop(old func(taken) bool) {
	for len(m.order) > 0 && old(m.order[0]) {
		if one := m.order[0]; m.seen[one.id].Equal(one.at) { // else it was forgotten, and taken again
			delete(m.seen, one.id)
		}
		m.order = m.order[1:]
	}
}

// forget lets a delivery come again, of which nothing was done.
func (m *memory) forget(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.seen, sha256.Sum256([]byte(id)))
	}
}
