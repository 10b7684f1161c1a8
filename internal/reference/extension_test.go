package reference_test

import (
	"os"
	"testing"

	"github.com/pullet/pullet/internal/reference"
	"github.com/pullet/pullet/render"
)

const documented = "../../docs/examples/extensions"

// TestExtensionTopics: an action of a repository is explained by its manifest.
func TestExtensionTopics(t *testing.T) {
	list, errs := render.Open(render.Layer{Name: "main", FS: os.DirFS(documented)}).Extensions()
	if len(list) != 2 || len(errs) > 0 {
		t.Fatalf("%d extensions, %v", len(list), errs)
	}
	topic := reference.OfExtension(list[1])
	if topic.Name != "motd.banner" || topic.Summary != "a file with one line of text in a frame" || len(topic.Fields) != 3 {
		t.Errorf("%+v", topic)
	}
	each([]reference.Topic{topic}, func(one reference.Topic) {
		switch one.Name {
		case "motd.banner.border":
			if one.Type != "word" || one.Default != "*" || len(one.Values) != 4 || one.Required {
				t.Errorf("%+v", one)
			}
		case "motd.banner.text":
			if one.Type != "text" || !one.Required || one.Text != "one line" {
				t.Errorf("%+v", one)
			}
		}
	})
}

// TestExtensionSchemas: the schemas accept the documented repository when they know its actions, and only then.
func TestExtensionSchemas(t *testing.T) {
	c := newChecker(t, "motd.banner", "json.value")
	for _, name := range []string{"base/jobs.yaml", "jobs/site.yaml", "extensions/motd.yaml", "extensions/json.yaml"} {
		text, err := os.ReadFile(documented + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.check(kindOf(name), string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "jobs/site.yaml" && newChecker(t).check("jobs", string(text)) == nil {
			t.Error("an action that nobody knows is accepted")
		}
	}
}
