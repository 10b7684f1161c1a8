package authority

import (
	"sync"
	"time"
)

// bucket has a number of tokens at most, and gets some back each second. Its own code, because a token
// of golang.org/x/time cannot be given back when it was used.
type bucket struct {
	mu        sync.Mutex
	left      float64
	most      float64
	perSecond float64
	at        time.Time // when left was right
}

func newBucket(most, perSecond float64) *bucket {
	return &bucket{left: most, most: most, perSecond: perSecond}
}

// take takes a token, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since := now.Sub(b.at); since > 0 {
		b.left, b.at = min(b.most, b.left+since.Seconds()*b.perSecond), now
	}
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// giveBack returns a token that was taken in vain.
func (b *bucket) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.most, b.left+1)
}
