package agent

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pullet/pullet/state"
)

// TestEtcdWait: an etcd that is away needs nobody, and one that refuses this host needs its rights fixed.
func TestEtcdWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		ends state.Remedy
	}{
		{errors.New("no answer"), state.Itself("the next pull goes on")},
		{
			&state.UnreachableError{Err: rpctypes.ErrPermissionDenied},
			state.Act("give this host's user its rights in etcd, or fix etcd.username in its configuration"),
		},
	} {
		if w := etcdWait(c.err); w.Kind != state.WaitEtcd || w.Remedy != c.ends {
			t.Errorf("%v: %+v", c.err, w)
		}
	}
}
