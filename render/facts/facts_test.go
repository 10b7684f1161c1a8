package facts_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/pullet/pullet/render/facts"
)

// TestSample: what is rendered without its node has every fact, each of the kind that a host gives.
func TestSample(t *testing.T) {
	var names []string
	host, sample := facts.Gather("/"), facts.Sample("web1")
	for _, f := range facts.All() {
		names = append(names, f.Name)
		if got, want := reflect.TypeOf(sample[f.Name]), reflect.TypeOf(host[f.Name]); got != want {
			t.Errorf("%s: the sample has %v, a host %v", f.Name, got, want)
		}
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(sample)); !slices.Equal(got, names) {
		t.Errorf("the sample has %v, want %v", got, names)
	}
}
