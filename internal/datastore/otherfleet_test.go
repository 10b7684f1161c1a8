package datastore

import (
	"os"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
)

// TestOtherFleet: a keeper does not begin with the data of another fleet, and changes nothing there.
func TestOtherFleet(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.join(f.store("admin"), "web1", authority.Node)
	f.end()
	own, err := os.ReadFile(f.file(authorityFile))
	f.must(err)
	ends := func(what, words string) {
		t.Helper()
		wantError(t, what, Run(t.Context(), f.Options), words)
	}
	with := func(a *authority.Authority) {
		f.must(os.WriteFile(f.file(authorityFile), a.Encode(), 0o600))
		for _, name := range []string{bundleFile, serverFile, keeperFile, crlFile} {
			f.must(os.Remove(f.file(name)))
		}
	}

	f.Fleet = "stage"
	ends("another name", "the datastore in "+f.Dir+" is of the fleet prod, and this host of the fleet stage")
	stage, err := authority.Create("stage", time.Now())
	f.must(err)
	with(stage)
	ends("the record of another name", "the record in "+f.file(memberDir)+
		": it knows nobody of the fleet stage, and others: it is of another fleet")

	f.Fleet = fleetName
	same, err := authority.Create(fleetName, time.Now())
	f.must(err)
	with(same)
	ends("the record of another fleet of the same name", "the record in "+f.file(memberDir)+": it is of another authority than "+
		f.file(authorityFile)+" here: "+same.Fingerprint())

	a, err := authority.Parse(own)
	f.must(err)
	with(a)
	f.serve()
	f.wantWhole()
}
