package main

import (
	"testing"
	"time"

	"github.com/pullet/pullet/internal/harness/fleet"
	"github.com/pullet/pullet/internal/tier"
)

// TestFleetUnderFaults runs a fleet of real processes that are killed, frozen and cut off from each other, with a new
// version every few seconds. Then it judges the history of every key of etcd, which is a total order of all promises of
// nodes to each other, and the notes of the steps. After the faults all nodes get to the last version. With -short the
// fleet is small and the time short.
func TestFleetUnderFaults(t *testing.T) {
	t.Parallel()
	o := fleet.Options{
		Program: "pullet", Seed: tier.Seed(t), Members: 3, Duration: 2 * time.Minute, Long: true,
		Roles: map[string]string{"can1": "can", "db1": "db", "db2": "db", "db3": "db", "web1": "web", "web2": "web", "web3": "web", "web4": "web"},
	}
	if testing.Short() {
		o.Members, o.Duration, o.Long = 1, 15*time.Second, false
		o.Roles = map[string]string{"can1": "can", "db1": "db", "db2": "db", "web1": "web"}
	}
	fleet.Run(t, o)
}

// TestFleetOnItsOwnDatastoreUnderFaults runs a fleet whose hosts carry its datastore during faults, and judges it as
// TestFleetUnderFaults does.
func TestFleetOnItsOwnDatastoreUnderFaults(t *testing.T) {
	tier.Long(t, "three members and their elections take a while")
	t.Parallel()
	fleet.RunOwnDatastore(t, fleet.Options{
		Program: "pullet", Seed: tier.Seed(t), Duration: time.Minute,
		Roles: map[string]string{"can1": "can", "db1": "db", "db2": "db", "db3": "db", "web1": "web", "web2": "web"},
	}, []string{"db1", "db2", "db3", "web1"})
}
