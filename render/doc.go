// Package render turns the files of a snapshot into a catalog: what the state repositories say for one node.
//
// The vocabulary, in the order in which the data flows:
//
//   - A Layer is the content of one state repository at one commit. Several layers are read in order: base files of all
//     of them, and a named file from the last layer that has it.
//   - A Repository is the layers together with what was parsed of them. It is kept as long as the commits do not
//     change.
//   - An Input is everything else that a catalog depends on: the node, its facts, the fleet's view, host variables.
//   - A Catalog is the result: variables, macros, and jobs with their steps in order.
//   - A Position is a place in a template's source; every mistake carries one.
//
// The package is pure. It reads layers and nothing else: no clock, no network, no environment, no disk, no commands.
// The same layers and the same Input give the same Catalog, and the Catalog's Digest says so.
//
// Files are Go templates (text/template with sprig) which are rendered and then decoded as YAML. Positions are those of
// the template source also when the mistake shows only after rendering: see source.go for how.
package render
