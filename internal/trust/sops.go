package trust

import (
	"bytes"
	"errors"
	"fmt"

	"filippo.io/age"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// What a file of SOPS may have. A hostile one costs what these allow.
const (
	maxSOPS           = 1 << 20 // bytes
	maxSOPSDepth      = 100     // of values in values
	maxSOPSKey        = 1 << 10 // bytes of a key
	maxSOPSRecipients = 256
	maxSOPSPattern    = 1 << 10 // bytes of a rule's regular expression
)

// sopsKey is the key at the top of a file below which SOPS keeps its own.
const sopsKey = "sops"

// isSOPS reports a YAML text that SOPS wrote: it has a map "sops" with a "mac" at its top. Of a text that is too large
// to be read, it reports that there is a line for each.
func isSOPS(text []byte) bool {
	if !bytes.Contains(text, []byte(sopsKey)) {
		return false
	}
	if len(text) > maxSOPS {
		text = append([]byte("\n"), text...)
		return bytes.Contains(text, []byte("\nsops:")) && bytes.Contains(text, []byte(" mac: "))
	}
	var n yaml.Node
	if yaml.Load(text, &n, yaml.WithSingleDocument(), shallowSOPS()) != nil {
		return false
	}
	meta := below(documentRoot(&n), sopsKey)
	return below(meta, "mac") != nil
}

// openSOPS decrypts a YAML file of SOPS whose data key is encrypted with age. It returns the document in clear, without
// comments and without what SOPS added.
//
// What it returns is what somebody encrypted who knew the data key, but for what the format leaves open: empty texts,
// nulls, empty maps and lists, how values are grouped in lists, the types of values, the keys of values in clear, and
// where one value in clear ends and the next begins. In a file with mac_only_encrypted, anybody may change, add and
// remove values in clear. It does not say who encrypted: whoever has a recipient can write another file for it.
//
// The error is ErrNotRecipient where no identity opens the data key. No error has a decrypted value in its text.
func openSOPS(text []byte, identities []age.Identity) ([]byte, error) {
	f, err := readSOPS(text)
	if err != nil {
		return nil, err
	}
	key, err := f.meta.dataKey(identities)
	if err != nil {
		return nil, err
	}
	o, err := newSOPSOpening(key, f.meta.onlyEncrypted)
	if err != nil {
		return nil, err
	}
	opened, err := f.walk(o)
	if err != nil {
		return nil, err
	}
	if err := o.checkMAC(f.meta); err != nil {
		return nil, err
	}
	return dumpSOPS(opened)
}

// sopsFile is a file of SOPS, of the shape that SOPS writes.
type sopsFile struct {
	document *yaml.Node
	root     *yaml.Node // a map
	meta     *sopsMeta
}

// readSOPS reads a file without decrypting anything.
func readSOPS(text []byte) (*sopsFile, error) {
	if len(text) > maxSOPS {
		return nil, fmt.Errorf("it is larger than %d KiB, which is too large for a file of SOPS", maxSOPS>>10)
	}
	var n yaml.Node
	if err := yaml.Load(text, &n, shallowSOPS()); err != nil {
		return nil, fmt.Errorf("it is not one YAML document: %w", err)
	}
	root := documentRoot(&n)
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, errors.New("it is not a file of SOPS: it has no map at its top")
	}
	if err := checkShape(root); err != nil {
		return nil, err
	}
	meta, err := readSOPSMeta(below(root, sopsKey))
	if err != nil {
		return nil, err
	}
	return &sopsFile{document: &n, root: root, meta: meta}, nil
}

// shallowSOPS bounds the depth of a document.
func shallowSOPS() yaml.Option {
	return yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxSOPSDepth)))
}

// documentRoot is the value of a document, nil where there is none.
func documentRoot(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		return n.Content[0]
	}
	return nil
}

// below is the value of a key in a map, nil where there is none. It follows an alias.
func below(n *yaml.Node, key string) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// checkShape refuses what SOPS never writes, since it is read by one program so and by another one so.
func checkShape(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("line %d: YAML anchors and aliases are not allowed in a file of SOPS", n.Line)
	case !coreTags[n.ShortTag()]:
		return fmt.Errorf("line %d: the YAML tag %.50q is not allowed in a file of SOPS", n.Line, n.ShortTag())
	case n.Kind == yaml.MappingNode:
		if err := checkKeys(n); err != nil {
			return err
		}
	}
	for _, c := range n.Content {
		if err := checkShape(c); err != nil {
			return err
		}
	}
	return nil
}

// coreTags are the tags of YAML that a file may have.
var coreTags = map[string]bool{
	"!!map": true, "!!seq": true, "!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true,
	"!!timestamp": true, "!!binary": true,
}

// checkKeys refuses keys that are no texts, that are too long, and that stand twice in a map.
func checkKeys(n *yaml.Node) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			return fmt.Errorf("line %d: the merge key << is not allowed in a file of SOPS", key.Line)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			return fmt.Errorf("line %d: a key is not a text", key.Line)
		case len(key.Value) > maxSOPSKey:
			return fmt.Errorf("line %d: a key is longer than %d bytes", key.Line, maxSOPSKey)
		case seen[key.Value]:
			return fmt.Errorf("line %d: the key %.50q stands twice in a map", key.Line, key.Value)
		}
		seen[key.Value] = true
	}
	return nil
}

// dumpSOPS writes a document.
func dumpSOPS(n *yaml.Node) ([]byte, error) {
	out, err := yaml.Dump(n, yaml.WithLineWidth(-1))
	if err != nil {
		return nil, errors.New("the document cannot be written as YAML") // the cause may have a value in it
	}
	return out, nil
}
