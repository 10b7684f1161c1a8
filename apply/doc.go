// Package apply brings a node to what its catalog says.
//
//   - Bind gives a catalog's steps their actions, types and order, and fails with every mistake before anything is
//     touched.
//   - A Program is the bound catalog. Plan compares it with the node; Run applies it. Both walk the same path: a plan
//     is a run whose changes are not made.
//   - An Action says what is desired. Check compares, and never writes; Apply makes the next Check empty. See package
//     action for the built-in ones.
//   - Steps that place files make them durable together, in groups: see settle.go for the order in which things reach
//     the disk.
//   - A Report is what came of it, step by step. Outcomes tell apart what was right already (ok), what was changed,
//     what failed, what was skipped, and what waits (pending).
//
// To add an action, see CONTRIBUTING.md.
package apply
