package webhook

import (
	"sync"
	"time"
)

// counts are how many requests came to what end, by hook and result. There are as many as hooks and results.
type counts struct {
	mu sync.Mutex
	of map[string]map[string]*count
}

type count struct {
	n    uint64
	told time.Time
}

// add counts one more. It is news when nobody was told of such a one for a minute.
func (c *counts) add(hook, result string, now time.Time) (n uint64, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]map[string]*count{}
	}
	if c.of[hook] == nil {
		c.of[hook] = map[string]*count{}
	}
	one := c.of[hook][result]
	if one == nil {
		one = &count{}
		c.of[hook][result] = one
	}
	one.n++
	if news = one.told.IsZero() || now.Sub(one.told) >= time.Minute; news {
		one.told = now
	}
	return one.n, news
}

// Counts are how many requests each hook had, by what became of them. Requests for no hook have the name "".
func (h *Handler) Counts() map[string]map[string]uint64 {
	c := &h.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]map[string]uint64{}
	for hook, results := range c.of {
		out[hook] = map[string]uint64{}
		for result := range results {
			out[hook][result] = results[result].n
		}
	}
	return out
}
