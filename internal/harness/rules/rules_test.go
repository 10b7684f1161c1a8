package rules

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

func fleet() map[string]string {
	return map[string]string{"edge1": "edge", "edge2": "edge", "db1": "db", "db2": "db", "web1": "web", "web2": "web"}
}

// TestChange: drawn rules keep a node in each role, name the node that fails, and leave the rules before as they were.
func TestChange(t *testing.T) {
	x := rand.New(rand.NewPCG(1, 0))
	r := First(fleet(), "hold")
	bad := map[string]bool{}
	for range 500 {
		roles, canaries := maps.Clone(r.Roles), maps.Clone(r.Canary)
		next := r.Change(x)
		if !maps.Equal(r.Roles, roles) || !maps.Equal(r.Canary, canaries) {
			t.Fatal("the rules before changed")
		}
		r = next
		if bad[r.Bad] = true; (r.Bad == "") != (r.BadNode == "") {
			t.Errorf("%q fails on %q", r.Bad, r.BadNode)
		}
		for _, role := range []string{"edge", "db", "web"} {
			if r.size(role) == 0 {
				t.Fatalf("no node has the role %s", role)
			}
		}
	}
	if len(bad) != 7 {
		t.Errorf("drawn were %v", bad)
	}
	if fixed := r.Fix(); fixed.Bad != "" || fixed.Closed {
		t.Errorf("%+v", fixed)
	}
}

// TestVersion: the judge knows the groups, limits and order of a version.
func TestVersion(t *testing.T) {
	r := First(fleet(), "hold")
	r.Half = true
	v := r.Version(3, "id")
	if v.Groups["edge1"] != "canary" || v.Groups["web1"] != "web" || v.Limits["web"] != 1 || v.Meet["web1"] != "web" ||
		v.Meet["db1"] != "others" {
		t.Errorf("%+v", v)
	}
	if got := strings.Join(v.Depends["web"], " "); got != "canary db" {
		t.Errorf("web depends on %s", got)
	}
	r.Mapped, r.Canary = true, nil
	v = r.Version(4, "id")
	if v.Groups["web1"] != "both" || len(v.Depends["both"]) != 0 {
		t.Errorf("%+v", v)
	}
}

// TestFiles: the failure of a version is in one of its files, and each version differs.
func TestFiles(t *testing.T) {
	r := First(fleet(), "hold")
	whole := r.Files("/dir", 1)
	for bad, file := range map[string]string{Work: "jobs/edge.yaml", badSyntax: "jobs/cluster.yaml",
		badValidation: "jobs/check.yaml"} {
		r.Bad, r.BadNode = bad, "db1"
		if got := r.Files("/dir", 1); got[file] == whole[file] {
			t.Errorf("%s: %s is the same", bad, file)
		}
	}
	if r.Files("/dir", 2)["jobs/check.yaml"] == r.Files("/dir", 1)["jobs/check.yaml"] {
		t.Error("two versions are the same")
	}
	if !strings.Contains(Scripts("/dir")["step"], ">> /dir/log") {
		t.Error(Scripts("/dir"))
	}
}
