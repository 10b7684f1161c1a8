package house

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// defaultPaths is the one file that names paths of pullet's own: their type gives them away below --root only.
const defaultPaths = "internal/agent/defaultpath.go"

// absolute is a path of a host, but for those that the kernel makes up.
var absolute = regexp.MustCompile(`^/(bin|boot|etc|home|lib|mnt|opt|root|run|sbin|srv|tmp|usr|var)(/\S*)?$`)

// otherPaths are the other paths in the sources, each with the reason why it is no default path of pullet's. The paths
// of steps are in apply/action, where each is resolved beneath the root of the host.
var otherPaths = map[string]string{
	"apply/command.go /root": "the home of root, which a command gets in its environment",
	"apply/host.go /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin": "the PATH of commands",
	"apply/leaving.go /run/systemd/system":                                       "whether the machine goes down, which ends steps below any root",
	"apply/leaving.go /run/systemd/shutdown/scheduled":                           "the same",
	"cmd/pullet/doctor_starts.go /run/systemd/system":                            "a text that is sought in crontabs",
	"apply/claim/path.go /root":                                                  "the home of root, whose files steps name in two ways",
	"apply/claim/path.go /home/":                                                 "where homes are that no step names",
	"apply/command.go /bin/sh":                                                   "the shell of the root that a command runs in",
	"cmd/pullet/editor_program.go /bin/sh":                                       "the shell of the person who edits",
	"render/later.go /etc/pullet/pullet.yaml":                                    "the end of a message",
	"render/facts/facts.go /etc/machine-id":                                      "read beneath the root",
	"render/facts/facts.go /etc/hostname":                                        "read beneath the root",
	"render/facts/facts.go /etc/os-release":                                      "read beneath the root",
	"render/facts/facts.go /usr/lib/os-release":                                  "read beneath the root",
	"render/facts/facts.go /etc/hosts":                                           "read beneath the root",
}

// asText are the files that name a default path in a text that people read, and do not open it.
var asText = []string{"internal/agent/extensions.go", "cmd/pullet/main.go", "cmd/pullet/fleet_create.go"}

// TestDefaultPathsAreInOnePlace: a path of a host is in the sources of the product only as a DefaultPath, which is
// below --root, or for a reason that the table has.
func TestDefaultPathsAreInOnePlace(t *testing.T) {
	found, converted, seen := map[string]bool{}, map[string]bool{}, 0
	eachSource(t, func(path, _ string, files *token.FileSet, parsed *ast.File) {
		path = filepath.ToSlash(path)
		if strings.HasPrefix(path, "scripts/") || strings.HasPrefix(path, "apply/action/") || ofTests(path) {
			return
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if path == defaultPaths && len(n.Values) > 0 {
					if is, ok := n.Type.(*ast.Ident); !ok || is.Name != "DefaultPath" {
						t.Errorf("%s: give %s the type DefaultPath", files.Position(n.Pos()), n.Names[0].Name)
					}
					seen += len(n.Values)
				}
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if err != nil || n.Kind != token.STRING || !absolute.MatchString(text) || path == defaultPaths {
					return true
				}
				found[path+" "+text] = true
				if otherPaths[path+" "+text] == "" {
					t.Errorf("%s: %s is not below --root: make it a DefaultPath in %s, or say why not in otherPaths", files.Position(n.Pos()), text, defaultPaths)
				}
			case *ast.CallExpr:
				if to, ok := n.Fun.(*ast.Ident); ok && to.Name == "string" && len(n.Args) == 1 && isDefaultPath(n.Args[0]) {
					converted[path] = true
				}
			}
			return true
		})
	})
	for known := range otherPaths {
		if !found[known] {
			t.Errorf("%s is not in the sources: remove it from otherPaths", known)
		}
	}
	for _, path := range asText {
		if !converted[path] {
			t.Errorf("%s names no default path: remove it from asText", path)
		}
		delete(converted, path)
	}
	for path := range converted {
		t.Errorf("%s takes a default path as it is on the host: ask Below for it, or add the file to asText", path)
	}
	if seen < 6 {
		t.Errorf("%d default paths in %s, want 6 or more", seen, defaultPaths)
	}
}

// isDefaultPath reports whether an expression is one of the default paths, by its name.
func isDefaultPath(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		e = s.Sel
	}
	name, ok := e.(*ast.Ident)
	return ok && strings.HasPrefix(strings.ToLower(name.Name), "default")
}
