package render

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// ErrNotForNode says that an encrypted file is not encrypted for the node.
var ErrNotForNode = errors.New("it is not encrypted for a key of this host")

// IsSealed reports the name of an encrypted file.
func IsSealed(name string) bool { return strings.HasSuffix(name, SealedSuffix) }

// sealedFiles are the encrypted files of a repository.
type sealedFiles struct {
	r     *Repository
	texts map[string]string // of those that were opened
	sops  map[string]bool   // files of variables: SOPS encrypted them
	rules map[string]layerRules
}

// layerRules is what was read of secrets.yaml of a layer.
type layerRules struct {
	rules *SecretRules
	err   error
}

// ofSOPS are the lines that every YAML file of SOPS has.
var ofSOPS = lazyregexp.New(`(?ms)^["']?sops["']?\s*:.*\bmac["']?\s*:\s*["']?ENC\[`)

// isSOPS reports a file of variables that SOPS encrypted, by its text.
func (f *sealedFiles) isSOPS(p place) bool {
	key := p.layer.Name + "\x00" + p.path
	known, ok := f.sops[key]
	if !ok {
		text, err := fs.ReadFile(p.layer.FS, p.path) // a file that cannot be read is reported where it is used
		known = err == nil && ofSOPS.Match(text)
		f.sops[key] = known
	}
	return known
}

// closedFiles are the encrypted files of variables that a catalog would have read.
type closedFiles struct {
	others  []string // that are for other nodes
	unknown []string // that nobody tried to open: there are no keys
}

// note remembers a file that was not opened.
func (c *closedFiles) note(name string, how access) {
	switch {
	case how == notForNode && !slices.Contains(c.others, name):
		c.others = append(c.others, name)
	case how == notOpened && !slices.Contains(c.unknown, name):
		c.unknown = append(c.unknown, name)
	}
}

// access is what became of an encrypted file.
type access int

const (
	opened     access = iota
	notForNode        // the node is not meant to read it
	notOpened         // there are no keys, and it may be meant to
)

// open is the text of an encrypted file.
func (f *sealedFiles) open(in Input, p place) (text string, how access, err error) {
	if in.Unseal == nil {
		how, err = f.unopened(in, p)
		return "", how, err
	}
	key := p.layer.Name + "\x00" + p.path
	if known, ok := f.texts[key]; ok {
		return known, opened, nil
	}
	sealed, err := fs.ReadFile(p.layer.FS, p.path)
	if err != nil {
		return "", opened, fmt.Errorf("cannot be read: %w", plainFSError(err))
	}
	plain, err := in.Unseal(sealed)
	if errors.Is(err, ErrNotForNode) {
		return "", notForNode, f.meant(in.Node, p, err)
	}
	if err != nil {
		return "", opened, err
	}
	f.texts[key] = string(plain)
	return string(plain), opened, nil
}

// unopened says what becomes of an encrypted file where there are no keys.
func (f *sealedFiles) unopened(in Input, p place) (access, error) {
	rules, err := f.rulesOf(p.layer)
	if err != nil || rules == nil {
		return notOpened, err
	}
	if rule, found := rules.For(p.path); !found || !rule.Meant(in.Node) {
		return notForNode, nil
	}
	if in.CheckSealed == nil || !IsSealed(p.path) {
		return notOpened, nil
	}
	sealed, err := fs.ReadFile(p.layer.FS, p.path)
	if err != nil {
		return notOpened, fmt.Errorf("cannot be read: %w", plainFSError(err))
	}
	if err = in.CheckSealed(sealed, rules.Hosts[in.Node.Name]); errors.Is(err, ErrNotForNode) {
		err = f.meant(in.Node, p, err)
	}
	return notOpened, err
}

// meant is an error for an encrypted file that the node cannot read and should; why is what it lacks.
func (f *sealedFiles) meant(n Node, p place, why error) error {
	rules, err := f.rulesOf(p.layer)
	if err != nil {
		return err
	}
	rule, found := rules.For(p.path)
	if !found || !rule.Meant(n) {
		return nil
	}
	return fmt.Errorf(
		"%s gives it to this host, but %w: pullet secrets rekey %s, when its key below hosts is right",
		SecretsFile,
		why,
		p.path,
	)
}

// rulesOf are the rules of a layer, which are read once.
func (f *sealedFiles) rulesOf(l Layer) (*SecretRules, error) {
	known, ok := f.rules[l.Name]
	if !ok {
		known.rules, known.err = f.r.SecretRules(l)
		f.rules[l.Name] = known
	}
	return known.rules, known.err
}

// sealedVars are the variables of an encrypted file. They are no template: what stands there is what it says.
func (c *compiler) sealedVars(path string) located {
	p, _ := c.repo.locate(path)
	name := c.repo.displayName(p)
	fail := func(format string, args ...any) located {
		c.scope.closed.note(name, notOpened) // what is missing follows from it
		c.fail((&source{path: name}).errorAt(Position{File: name}, format, args...))
		return located{}
	}
	text, how, err := c.repo.sealed.open(c.scope.in, p)
	var rules ErrorList
	switch {
	case errors.As(err, &rules):
		c.scope.closed.note(name, notOpened)
		c.errs = append(c.errs, rules...)
		return located{}
	case err != nil:
		return fail("%v", err)
	case how != opened:
		c.scope.closed.note(name, how)
		return located{}
	}
	doc, errs := parseYAML(&rendered{src: &source{path: name, text: text}, text: []byte(text)})
	if len(errs) > 0 {
		return fail("invalid YAML in line %d, which is not shown here: %s", errs[0].Pos.Line, editorOf(p.path))
	}
	if doc.root == nil {
		return located{}
	}
	d := &decoder{doc: doc}
	vars, isMap := d.any(doc.root).(map[string]any)
	if !isMap || len(d.errs) > 0 {
		return fail("expected a map of variables: %s", editorOf(p.path))
	}
	values, _ := sealed(vars).(map[string]any)
	secret, _ := c.repo.sealed.secretPart(p, values).(map[string]any)
	if err := c.scope.secrets.addVars(secret); err != nil {
		return fail("%v", err)
	}
	if !c.tracing {
		return located{values: values}
	}
	places := doc.places(doc.root)
	hidePlaces(places)
	return located{values, places}
}

// secretPart are the variables of an encrypted file that are secrets: all of them, but for what SOPS left in clear.
func (f *sealedFiles) secretPart(p place, vars map[string]any) any {
	if IsSealed(p.path) {
		return vars
	}
	text, err := fs.ReadFile(p.layer.FS, p.path)
	if err != nil {
		return vars
	}
	doc, errs := parseYAML(&rendered{src: &source{path: p.path, text: string(text)}, text: text})
	if len(errs) > 0 || doc.root == nil {
		return vars
	}
	return encryptedPart(vars, (&decoder{doc: doc}).any(doc.root))
}

// encryptedPart is what is encrypted of a value, by how it stands in the file.
func encryptedPart(v, written any) any {
	switch v := v.(type) {
	case map[string]any:
		in, _ := written.(map[string]any)
		out := map[string]any{}
		for key, value := range v {
			if part := encryptedPart(value, in[key]); part != nil {
				out[key] = part
			}
		}
		return out
	case []any:
		in, _ := written.([]any)
		if len(in) != len(v) { // encrypted comments are items in the file
			return v
		}
		var out []any
		for i := range v {
			if part := encryptedPart(v[i], in[i]); part != nil {
				out = append(out, part)
			}
		}
		return out
	}
	if text, ok := written.(string); ok && strings.HasPrefix(text, "ENC[") {
		return v
	}
	return nil
}

// editorOf is the command that edits an encrypted file.
func editorOf(path string) string {
	if IsSealed(path) {
		return "pullet secrets edit " + path
	}
	return "sops edit " + path
}

// sealedHint says where a variable may stand that the node does not have.
func (s *scope) sealedHint(at string) string {
	if len(s.closed.others) == 0 || !readsVars(at) {
		return ""
	}
	said := fmt.Sprintf("it may stand in %s, which is not encrypted for this host", strings.Join(s.closed.others, ", "))
	if slices.ContainsFunc(s.closed.others, IsSealed) {
		said += ": " + SecretsFile + " says who may read it"
	}
	return said
}

// errNotOpened is the cause of what only looks like a mistake, because encrypted files were not opened.
var errNotOpened = fmt.Errorf("encrypted files were not opened: %w", ErrNotYet)

// explain gives the failure of an action its hint. Where encrypted files were not opened, that may be its cause, and
// nothing but that: what the action reads can have got there in many ways.
func (s *scope) explain(e *Error, failed *execErr) {
	e.Hint = s.missing(failed)
	if s != nil && len(s.closed.unknown) > 0 && failed.at != "" && !withoutVars(failed.at) {
		e.cause = errNotOpened
	}
}

// readsFleet begins an action that reads nothing but facts and the fleet.
var readsFleet = lazyregexp.New(`^(server|Server|servervars|services|pullet|eden)\b`)

// withoutVars reports an action that no variable can have reached.
func withoutVars(at string) bool {
	return readsFleet.MatchString(at) && !readsVars(at) && !strings.Contains(at, "$")
}

// notOpenedAt is what there is to say of a value that cannot be known without the encrypted files.
func (s *scope) notOpenedAt(doc *document, n *yaml.Node) *Error {
	e := doc.errorAt(n, "this is not known while encrypted files are not opened")
	e.cause = errNotOpened
	return e
}

// withoutUnopened are the mistakes, with a note for each encrypted file in place of those that it may explain.
func (s *scope) withoutUnopened(list ErrorList) (mistakes, notes ErrorList) {
	for _, e := range list {
		if !errors.Is(e, errNotOpened) {
			mistakes = append(mistakes, e)
			continue
		}
		for _, name := range s.closed.unknown {
			notes = append(notes, &Error{
				Pos: Position{File: name}, Severity: Note,
				Message: "is encrypted and was not opened: what reads its variables was not checked",
			})
		}
	}
	return mistakes, notes
}

// readsVars reports an action that reads variables.
func readsVars(at string) bool {
	return strings.Contains(at, "vars") || strings.Contains(at, "variables")
}

// checkSecretPlaces refuses secrets where people would see them: everywhere but in the parameters of steps, and in
// variables.
func (f *documents) checkSecretPlaces(doc *document, n *yaml.Node) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && isSecret(n) {
		e := doc.errorAt(n, "a secret cannot stand here, where it would be shown")
		e.Hint = "secrets belong in the parameters of steps; an expression reads variables itself"
		f.c.fail(e)
		return
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && !doc.shown && slices.Contains(hiddenFields, n.Content[i-1].Value) {
			continue
		}
		f.checkSecretPlaces(doc, c)
	}
}

// hiddenFields are the fields of steps and jobs whose values are not shown where they hold secrets.
var hiddenFields = []string{"parameters", "defaults"}
