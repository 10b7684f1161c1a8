package agent

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestUprootedGivesItsName: an agent that ends because its state directory was removed gives its name up, so that the
// next start takes it at once. The directory may go in the middle of a pull, before or behind its registration.
func TestUprootedGivesItsName(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), nil)
	l := web1.loopEvery(time.Second)
	l.pulled("the start")
	if !web1.overview().Alive["web1"] {
		t.Fatal("it does not live")
	}
	for os.RemoveAll(web1.Paths.State) != nil { // a pull wrote into it meanwhile, as it may behind the back of rm
	}
	err := <-l.ended
	if err == nil || !strings.Contains(err.Error(), "was removed or replaced while the agent ran") {
		t.Fatal(err)
	}
	if web1.overview().Alive["web1"] {
		t.Error("it has the name still")
	}
	web1.exits(ExitOK, "")
}
