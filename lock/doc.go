// Package lock is the gates that a node passes before it changes, on etcd.
//
// A Slot lets a limited number of a group's nodes change at a time. It is a claim without a lease beside a lease that says that
// its holder lives: a holder that dies keeps its claim until somebody takes it back on purpose, so that a commit that kills hosts
// cannot walk through the fleet slot by slot.
//
// Admission reads everything at one revision, decides with a pure function (Decide), and commits only if no claim of the group, no gate
// that counts, not the fleet's version and not its own lease has moved. What ends a claim compares its fence, the revision at which
// it was made.
package lock
