package reference_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/reference"
)

var update = flag.Bool("update", false, "write docs/actions.md anew")

// TestActionsPage holds docs/actions.md to what pullet explain says.
func TestActionsPage(t *testing.T) {
	topics, err := reference.Topics()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# Actions\n\nWhat steps can say, as `pullet explain ACTION` says it. This file is made by a test from the comments of the source: " +
		"`go test ./internal/reference -run TestActionsPage -update`.\n")
	for _, topic := range topics {
		if topic.Group == "action" {
			actionSection(&page, topic)
		}
	}
	const path = "../../docs/actions.md"
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != page.String() {
		t.Errorf("docs/actions.md is not what the source says (%v): go test ./internal/reference -run TestActionsPage -update", err)
	}
}

func actionSection(page *strings.Builder, topic reference.Topic) {
	fmt.Fprintf(page, "\n## %s\n\n%s.\n\n%s\n", topic.Name, strings.ToUpper(topic.Summary[:1])+topic.Summary[1:], strings.TrimSpace(topic.Text))
	if len(topic.Fields) > 0 {
		page.WriteString("\n| parameter | type | default | meaning |\n| --- | --- | --- | --- |\n")
	}
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, f := range topic.Fields {
		_, name, _ := strings.Cut(strings.TrimPrefix(f.Name, topic.Name), ".")
		byDefault := f.Default
		if f.Required {
			byDefault = "required"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", name, cell.Replace(f.Type), cell.Replace(byDefault), cell.Replace(strings.TrimSpace(f.Summary+" "+f.Text)))
	}
	fmt.Fprintf(page, "\n```yaml\n%s\n```\n", strings.TrimRight(topic.Example, "\n"))
}
