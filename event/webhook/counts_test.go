package webhook

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
