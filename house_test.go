package pullet

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

// mayImport is the table of docs/dev/packages.md: what each package may know of ours.
var mayImport = map[string][]string{
	"":             {},
	"authority":    {"safetext", "unixsocket"},
	"gitremote":    {},
	"freeport":     {},
	"puller":       {"safetext", "gitremote", "trust"},
	"trust":        {},
	"safetext":     {},
	"durable":      {},
	"journal":      {"durable"},
	"render":       {"safetext"},
	"render/facts": {"render"},
	"render/lint":  {"render", "trust", "secrets"},
	"secrets":      {"render", "trust"},
	"state":        {"durable", "safetext", "authority"},
	"apply":        {"gitremote", "apply/hostfile", "journal", "safetext", "render"},
	"apply/action": {"apply", "apply/action/account", "apply/action/archive", "apply/action/basic", "apply/action/command", "apply/action/event",
		"apply/action/file",
		"apply/action/git", "apply/action/mount", "apply/action/offer", "apply/action/pkg", "apply/action/system", "apply/action/systemd"},
	"apply/action/actiontest": {"apply", "apply/action", "journal", "render"},
	"apply/action/account":    {"apply", "apply/action/passwd", "apply/action/place", "apply/hostfile", "render"},
	"apply/action/archive":    {"apply", "apply/action/fetch", "apply/action/place", "apply/hostfile"},
	"apply/action/basic":      {"apply", "render"},
	"apply/action/command":    {"apply", "apply/action/place", "apply/hostfile", "safetext", "render"},
	"apply/action/event":      {"apply", "safetext", "render"},
	"apply/action/extension":  {"apply", "apply/action/place", "durable", "render", "trust"},
	"apply/action/file":       {"apply", "apply/action/fetch", "apply/action/place", "apply/hostfile", "render"},
	"apply/action/git":        {"apply", "apply/action/place", "apply/hostfile", "gitremote", "safetext", "render"},
	"apply/action/mount":      {"apply", "apply/action/place", "apply/hostfile", "render"},
	"apply/action/offer":      {"apply", "safetext", "render"},
	"apply/action/pkg":        {"apply", "apply/action/fetch", "apply/action/place", "apply/hostfile", "safetext", "render"},
	"apply/action/system":     {"apply", "apply/action/passwd", "apply/action/place", "apply/hostfile", "render"},
	"apply/action/systemd":    {"apply", "apply/hostfile", "render"},
	"apply/action/passwd":     {"apply"},
	"apply/action/fetch":      {"apply", "apply/hostfile"},
	"apply/action/place":      {"apply", "apply/action/passwd", "apply/action/fetch", "apply/hostfile", "safetext"},
	"apply/hostfile":          {},
	"event":                   {"durable", "safetext", "state"},
	"lock":                    {"state"},
	"lock/simulation":         {},
	"metrics":                 {"durable", "safetext", "apply/hostfile"},
	"ownfile":                 {},
	"internal/lazyregexp":     {},
	"program":                 {"durable", "ownfile"},
	"unixsocket":              {},
	"upload":                  {"gitremote"},
	"traces":                  {"safetext", "upload"},
	"datastore":               {"authority", "datastore/membership", "durable", "ownfile", "render", "state", "trust", "unixsocket", "upload"},
	"datastore/membership":    {},
	"event/webhook":           {"safetext", "state"},
	"event/sink":              {"safetext", "state", "upload"},
	"agent": {"ownfile", "safetext", "durable", "journal", "gitremote", "trust", "puller", "render", "render/facts", "state", "apply", "apply/action", "apply/action/extension",
		"apply/action/offer", "lock", "authority", "datastore", "program", "upload", "event", "event/webhook", "event/sink", "metrics", "traces"},
	"reference":         {"", "agent", "render", "render/facts", "apply", "apply/action"},
	"scripts/lab.d/web": {}, "scripts/lab.d/machine": {}, "scripts/overlay": {},
	"scripts/mutation": {"scripts/overlay"}, "scripts/tally": {},
	"internal/tier": {}, "internal/etcdmodel": {}, "internal/patience": {},
	"internal/harness/chance":  {},
	"internal/harness/cluster": {"freeport", "internal/harness/process"},
	"internal/harness/fleet": {"datastore", "freeport", "internal/harness/chance", "internal/harness/cluster",
		"internal/harness/history", "internal/harness/link", "internal/harness/process", "state"},
	"internal/harness/history":    {"state"},
	"internal/harness/judge":      {"internal/harness/rules"},
	"internal/harness/lab":        {"internal/tier"},
	"internal/harness/link":       {},
	"internal/harness/monitoring": {"freeport", "internal/harness/cluster", "internal/harness/process"},
	"internal/harness/powerloss":  {"internal/tier"},
	"internal/harness/process":    {},
	"internal/harness/rules":      {},
	"internal/harness/storm": {"internal/harness/chance", "internal/harness/cluster", "internal/harness/judge",
		"internal/harness/link", "internal/harness/process", "internal/harness/rules", "puller", "scripts/overlay", "state"},
	"internal/harness/victim": {},
	"cmd/pullet": {"", "ownfile", "safetext", "journal", "agent", "reference", "gitremote", "trust", "secrets", "puller", "render", "render/facts", "render/lint",
		"state", "apply", "apply/action", "apply/action/extension", "event", "lock", "authority", "datastore", "program"},
}

// everywhere are the packages that any other may import.
var everywhere = []string{"internal/lazyregexp"}

// onlyForTests are the packages that tests share. In the table only their own rows may name one.
var onlyForTests = []string{
	"apply/action/actiontest", "freeport", "internal/etcdmodel", "internal/patience", "internal/tier",
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

// TestSizes holds functions to 80 lines and files to 350: what is longer is two things.
func TestSizes(t *testing.T) {
	eachSource(t, func(path, text string, files *token.FileSet, parsed *ast.File) {
		if n := strings.Count(text, "\n"); n > 350 {
			t.Errorf("%s has %d lines", path, n)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line; n > 80 {
					t.Errorf("%s: %s has %d lines", path, f.Name.Name, n)
				}
			}
		}
	})
}

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
