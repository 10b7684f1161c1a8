// Package puller turns git sources into immutable snapshots.
//
// A source is a git repository and what to follow in it: a branch, the newest
// annotated tag that matches a glob, or the newest within a version
// constraint. Its head is the commit that it offers, or the last good one
// where the remote cannot be read or offers something that must not be
// followed. A store is the bare repository on disk that holds what was
// fetched; content is read straight from its objects, there is no work tree.
// A snapshot is the content of all sources at exact commits, one layer each.
//
// History only goes forward. A remote whose branch no longer contains the last
// good commit, whose tag moved, or whose newest release is older than the last
// one is refused: its head stays where it was, with a Problem that says so. An
// operator accepts such a rewind with Puller.Accept, which is recorded.
//
// Beside each store NAME.git lies its record NAME.json: the last good head, the
// tags that were followed, and the rewinds. It is written only after all that
// it names is on disk, so that a pull killed at any point leaves the previous
// state or the new one. A store is never pruned, so every commit that was once
// a head stays readable. A damaged store is found when it is used and built
// anew from its remote, together with whatever is still sound in the old one.
//
// Package gitremote talks to the remotes; nothing of a fetch is in a store
// before it was checked there.
package puller
