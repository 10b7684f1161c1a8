package state

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Endpoint is how one endpoint of the store is.
type Endpoint struct {
	URL     string
	Version string
	Size    int64         // of its database on disk
	Quota   int64         // of that; 0: it does not say
	Took    time.Duration // to answer
	Err     error         // it did not
}

// Health asks each endpoint how it is, and the store for its alarms. It reports whether it is out of space, and takes
// no more writes.
func (s *Store) Health(ctx context.Context) (members []Endpoint, full bool, err error) {
	for _, endpoint := range s.endpoints {
		m := Endpoint{URL: endpoint}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, dialTimeout)
		status, err := s.Client.Status(limited, endpoint)
		cancel()
		if m.Took, m.Err = time.Since(began), err; err == nil {
			m.Version, m.Size, m.Quota = status.Version, status.DbSize, status.DbSizeQuota
		}
		members = append(members, m)
	}
	alarms, err := s.Client.AlarmList(ctx)
	if err != nil {
		return members, false, err
	}
	for _, a := range alarms.Alarms {
		full = full || a.Alarm == etcdserverpb.AlarmType_NOSPACE
	}
	return members, full, nil
}

// WhenFull is what helps when the store is out of space.
func (s *Store) WhenFull() string { return s.access.whenFull() }
