package actiontest

import (
	"context"

	"github.com/pullet/pullet/render"
)

// Fleet is an apply.Fleet that keeps the services in memory. The node is n1.
type Fleet []render.Service

// Services are those of a name.
func (f *Fleet) Services(_ context.Context, name string) ([]render.Service, error) {
	var out []render.Service
	for _, s := range *f {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out, nil
}

// Stale says that the services are as of now.
func (f *Fleet) Stale() string { return "" }

// Announce replaces what the node announced by that name.
func (f *Fleet) Announce(ctx context.Context, s render.Service) error {
	err := f.Withdraw(ctx, s.Name)
	*f = append(*f, s)
	return err
}

// Withdraw removes what the node announced by that name.
func (f *Fleet) Withdraw(_ context.Context, name string) error {
	var out Fleet
	for _, s := range *f {
		if s.Name != name || s.Node != "n1" {
			out = append(out, s)
		}
	}
	*f = out
	return nil
}
