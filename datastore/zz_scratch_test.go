package datastore
import ("testing";"fmt";"strings";"github.com/pullet/pullet/authority";"time")
func TestScratchFull(t *testing.T) {
	f := created(t)
	s := f.store("admin")
	f.join(s, "web1", authority.Node)
	c := f.client("web1")
	for n := range 200 {
		if _, err := c.Put(t.Context(), fmt.Sprintf("/pullet/prod/blob/%d", n), strings.Repeat("x", 200<<10)); err != nil { t.Log(n, err); break }
	}
	time.Sleep(300*time.Millisecond)
	_, err := s.Nodes.Decommission(t.Context(), "web1", "admin", true)
	t.Log("decommission:", err)
	t.Log("revoke:", s.Identities.Revoke(t.Context(), "web1"))
	_, err = s.Client.Delete(t.Context(), "/pullet/prod/blob/0")
	t.Log("delete:", err)
	k := f.keeperStore()
	_, err = users{k.Client, fleetName}.UserDelete(t.Context(), "web1")
	t.Log("keeper drops:", err)
}
