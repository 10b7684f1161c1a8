package puller

import (
	"context"
	"strings"
)

// Describe is the first line of a commit's message and the name of its author,
// both as the commit has them: nobody checked who wrote it. It looks only into
// the store, and knows nothing of a commit that is not there.
func (p *Puller) Describe(ctx context.Context, h Head) (subject, author string, err error) {
	over, err := p.turn(ctx)
	if err != nil {
		return "", "", err
	}
	defer over()
	r, err := p.repository(h.Repo)
	if err != nil {
		return "", "", err
	}
	c, err := r.store.commit(h.hash())
	if err != nil {
		return "", "", err
	}
	subject, _, _ = strings.Cut(strings.TrimSpace(c.Message), "\n")
	return strings.TrimSpace(subject), c.Author.Name, nil
}
