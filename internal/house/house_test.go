// Package house holds the rules of the source: what packages may import, how large a knot of files may be, who may
// write to a host. It has no code but tests.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pullet/pullet"

// TestMain has the tests see the whole tree.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// mayImport is the table of docs/dev/packages.md: what each package may know of ours.
var mayImport = map[string][]string{
	"":                   {},
	"internal/authority": {"internal/safetext", "internal/unixsocket"},
	"internal/gitremote": {},
	"internal/gitrules":  {},
	"internal/freeport":  {},
	"puller":             {"internal/safetext", "internal/gitremote", "internal/gitrules", "internal/trust"},
	"internal/trust":     {},
	"internal/safetext":  {},
	"internal/durable":   {},
	"internal/journal":   {"internal/durable"},
	"render":             {"internal/safetext", "render/newcomer", "render/partial"},
	"render/partial":     {},
	"render/newcomer":    {},
	"render/facts":       {"render"},
	"render/lint":        {"render", "render/newcomer", "internal/trust", "internal/secrets"},
	"internal/secrets":   {"render", "internal/trust"},
	"state":              {"internal/durable", "internal/safetext", "internal/authority"},
	"apply/claim":        {},
	"apply":              {"internal/gitremote", "apply/claim", "apply/hostfile", "apply/proc", "internal/journal", "internal/safetext", "render", "render/newcomer"},
	"apply/action": {"apply", "apply/action/account", "apply/action/archive", "apply/action/basic", "apply/action/command", "apply/action/event",
		"apply/action/file",
		"apply/action/git", "apply/action/mount", "apply/action/offer", "apply/action/pkg", "apply/action/system", "apply/action/systemd"},
	"apply/action/actiontest":       {"apply", "apply/action", "internal/journal", "render"},
	"apply/action/account":          {"apply", "apply/action/passwd", "apply/action/place", "apply/claim", "apply/hostfile", "render"},
	"apply/action/archive":          {"apply", "apply/action/fetch", "apply/action/place", "apply/claim", "apply/hostfile"},
	"apply/action/basic":            {"apply", "render"},
	"apply/action/command":          {"apply", "apply/action/place", "apply/hostfile", "internal/safetext", "render"},
	"apply/action/event":            {"apply", "internal/safetext", "render"},
	"apply/action/extension":        {"apply", "apply/action/place", "internal/durable", "render", "internal/trust"},
	"apply/action/file":             {"apply", "apply/action/fetch", "apply/action/place", "apply/claim", "apply/hostfile", "render"},
	"apply/action/git":              {"apply", "apply/action/place", "apply/claim", "apply/hostfile", "internal/gitremote", "internal/gitrules", "internal/safetext", "render"},
	"apply/action/mount":            {"apply", "apply/action/place", "apply/claim", "apply/hostfile", "render"},
	"apply/action/offer":            {"apply", "apply/claim", "internal/safetext", "render"},
	"apply/action/pkg":              {"apply", "apply/action/fetch", "apply/action/place", "apply/claim", "apply/hostfile", "internal/safetext", "render"},
	"apply/action/system":           {"apply", "apply/action/passwd", "apply/action/place", "apply/claim", "apply/hostfile", "render"},
	"apply/action/systemd":          {"apply", "apply/claim", "apply/hostfile", "render"},
	"apply/action/passwd":           {"apply"},
	"apply/action/fetch":            {"apply", "apply/hostfile"},
	"apply/action/place":            {"apply", "apply/action/passwd", "apply/action/fetch", "apply/claim", "apply/hostfile", "internal/safetext"},
	"apply/hostfile":                {},
	"apply/proc":                    {},
	"internal/event":                {"internal/durable", "internal/safetext", "state"},
	"lock":                          {"lock/arbiter", "state"},
	"lock/arbiter":                  {"internal/safetext", "state"},
	"lock/simulation":               {},
	"internal/metrics":              {"internal/durable", "internal/safetext", "apply/hostfile"},
	"internal/ownfile":              {},
	"internal/lazyregexp":           {},
	"internal/program":              {"internal/durable", "internal/ownfile"},
	"internal/unixsocket":           {},
	"internal/upload":               {"internal/gitremote"},
	"internal/traces":               {"internal/safetext", "internal/upload"},
	"internal/datastore":            {"internal/authority", "internal/datastore/membership", "internal/durable", "internal/ownfile", "render", "state", "internal/trust", "internal/unixsocket", "internal/upload"},
	"internal/datastore/membership": {},
	"internal/event/webhook":        {"internal/safetext", "state"},
	"internal/event/sink":           {"internal/safetext", "state", "internal/upload"},
	"internal/agent": {"internal/ownfile", "internal/safetext", "internal/durable", "internal/journal", "internal/gitremote", "internal/trust", "puller", "render", "render/facts", "state", "apply", "apply/action", "apply/action/extension",
		"apply/action/offer", "lock", "lock/arbiter", "internal/authority", "internal/datastore", "internal/program", "internal/upload", "internal/event", "internal/event/webhook", "internal/event/sink", "internal/metrics", "internal/traces"},
	"internal/reference": {"", "internal/agent", "render", "render/newcomer", "render/facts", "apply", "apply/action"},
	"scripts/lab.d/web":  {}, "scripts/lab.d/machine": {}, "scripts/overlay": {},
	"scripts/mutation": {"scripts/overlay"}, "scripts/tally": {},
	"internal/house": {}, "internal/tier": {}, "internal/etcdmodel": {}, "internal/patience": {},
	"internal/harness/chance":  {},
	"internal/harness/cluster": {"internal/freeport", "internal/harness/process"},
	"internal/harness/fleet": {"internal/datastore", "internal/freeport", "internal/harness/chance", "internal/harness/cluster",
		"internal/harness/history", "internal/harness/link", "internal/harness/process", "state"},
	"internal/harness/history":    {"state"},
	"internal/harness/judge":      {"internal/harness/rules"},
	"internal/harness/lab":        {"internal/tier"},
	"internal/harness/link":       {},
	"internal/harness/monitoring": {"internal/freeport", "internal/harness/cluster", "internal/harness/process"},
	"internal/harness/powerloss":  {"internal/tier"},
	"internal/harness/process":    {},
	"internal/harness/rules":      {},
	"internal/harness/storm": {"internal/harness/chance", "internal/harness/cluster", "internal/harness/judge",
		"internal/harness/link", "internal/harness/process", "internal/harness/rules", "puller", "scripts/overlay", "state"},
	"internal/harness/victim": {},
	"cmd/pullet/fleetnames":   {"render", "state"},
	"cmd/pullet": {"", "cmd/pullet/fleetnames", "internal/ownfile", "internal/safetext", "internal/journal", "internal/agent", "internal/reference", "internal/gitremote", "internal/gitrules", "internal/trust", "internal/secrets", "puller", "render", "render/facts", "render/lint",
		"state", "apply", "apply/action", "apply/action/extension", "internal/event", "lock", "lock/arbiter", "internal/authority", "internal/datastore", "internal/program"},
}

// everywhere are the packages that any other may import.
var everywhere = []string{"internal/lazyregexp"}

// onlyForTests are the packages that tests share. In the table only their own rows may name one.
var onlyForTests = []string{
	"apply/action/actiontest", "internal/freeport", "internal/etcdmodel", "internal/patience", "internal/tier",
	"internal/harness/chance", "internal/harness/cluster", "internal/harness/fleet", "internal/harness/history",
	"internal/harness/judge", "internal/harness/lab", "internal/harness/link", "internal/harness/monitoring",
	"internal/harness/powerloss", "internal/harness/process", "internal/harness/rules", "internal/harness/storm",
	"internal/harness/victim",
}

// ofTests tells whether a file is a test, or in a package that only tests import.
func ofTests(path string) bool {
	return strings.HasSuffix(path, "_test.go") || slices.Contains(onlyForTests, filepath.ToSlash(filepath.Dir(path)))
}

// TestOnlyTestsImport: programs have nothing of the packages that tests share.
func TestOnlyTestsImport(t *testing.T) {
	for _, shared := range onlyForTests {
		if _, known := mayImport[shared]; !known {
			t.Errorf("there is no package %s", shared)
		}
		for pkg, imports := range mayImport {
			if slices.Contains(imports, shared) && !slices.Contains(onlyForTests, pkg) {
				t.Errorf("%s may import %s, which is only for tests", pkg, shared)
			}
		}
	}
}

// TestImportsRunOneWay holds the packages to the table.
func TestImportsRunOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := ours(fields[0])
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("package %q is not in the table", pkg)
		}
		for _, imported := range fields[1:] {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			if !slices.Contains(allowed, ours(imported)) && !slices.Contains(everywhere, ours(imported)) {
				t.Errorf("%s imports %s", pkg, ours(imported))
			}
		}
	}
}

func ours(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

// eachFile shows the files of the tree whose names end so.
func eachFile(t *testing.T, see func(path, text string), endings ...string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		ends := func(ending string) bool { return strings.HasSuffix(path, ending) }
		if err != nil || d.IsDir() || !slices.ContainsFunc(endings, ends) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			see(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// source is a Go file.
type source struct {
	files  *token.FileSet
	parsed *ast.File
}

// sources are the Go files that were parsed, by path: tests share them.
var sources = map[string]source{}

// parse parses a Go file of the tree once.
func parse(t *testing.T, path, text string) source {
	t.Helper()
	if _, known := sources[path]; !known {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		sources[path] = source{files, parsed}
	}
	return sources[path]
}

// eachSource shows the Go files of the tree but for tests.
func eachSource(t *testing.T, see func(path, text string, files *token.FileSet, parsed *ast.File)) {
	t.Helper()
	eachFile(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		s := parse(t, path, text)
		see(path, text, s.files, s.parsed)
	}, ".go")
}
