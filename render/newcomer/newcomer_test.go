package newcomer

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestStateHint: a state of Salt is shown as a step, also where its function stands behind an alias.
func TestStateHint(t *testing.T) {
	const want = "steps: [{name: web, action: service.ensure, parameters: {name: web, state: started}}]"
	for _, text := range []string{
		"web: service.running\n",
		"web: {service.running: []}\n",
		"web: {service: [running, {enable: true}]}\n",
		"other: {service: &how [running]}\nweb: {service: *how}\n",
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		pairs := doc.Content[0].Content
		got := Field("web", pairs[len(pairs)-1], []string{"steps"}, func(string) bool { return false })
		if !strings.HasSuffix(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
