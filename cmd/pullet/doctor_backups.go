package main

import (
	"fmt"
	"time"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/datastore"
)

// backups looks when the record of the datastore that this host keeps was backed up.
func backups(c agent.Config, now time.Time) []finding {
	if !c.Datastore.Set() {
		return nil
	}
	every := c.Datastore.Backup.Every.Std()
	if every == 0 {
		return []finding{{"backups", warn, "nobody makes any of the fleet's record by itself",
			"set datastore.backup in the configuration: docs/datastore.md"}}
	}
	past, err := datastore.PastBackups(c.Datastore)
	if err != nil {
		return []finding{{"backups", bad, err.Error(), ""}}
	}
	f := finding{Check: "backups", State: fine, What: "there is none that a restore would take in " + past.To}
	if past.Last.Name != "" {
		f.What = fmt.Sprintf("the last one is %s in %s, of %s",
			past.Last.Name, past.To, past.Last.At.Local().Format(time.DateTime))
	}
	late := now.Sub(past.Last.At) > 2*every
	if past.Failed.Times > 0 {
		f.What += fmt.Sprintf("; then it failed %d times: %s", past.Failed.Times, past.Failed.Why)
		f.State = warn
	}
	if late {
		f.State, f.Do = bad, "see journalctl -u pullet-etcd, fix it, and try: pullet datastore backup"
	}
	return []finding{f}
}
