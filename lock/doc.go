// Package lock is the gates that a node passes before and while it changes, on etcd. There is no controller: every node
// reads, decides for itself with a pure function, and commits only if nothing moved that it decided from.
//
// A Turn is a node's turn at a limited number of places: the slots of its group (NewTurn), a serialized step
// (Steps.Serialize), a command that an operator gave (NewCommandTurn). Nodes queue by tickets; each watches the one
// ahead of it, and the first the one bell that is rung whenever somebody may be freed. A place is a claim without a
// lease beside a mark on the holder's lease: a holder that dies keeps its claim until somebody takes it back on
// purpose, so that a commit that kills hosts cannot walk through the fleet slot by slot. The revision at which a claim
// was made is its fence: whatever its holder writes compares it.
//
// Each part of a Turn has one job: its reader looks, at one revision; Decide decides; its admission claims; its upkeep
// reclaims from lost nodes; its bell waits.
//
// Steps are the gates inside a run. A barrier opens in the transaction of the last arrival: every arrival writes a key
// whose version etcd counts, so no arrival is tried twice. An election gives places that nobody gives back, for one
// rollout; what the chosen nodes' steps returned is read by the others. Rosters are frozen when somebody first asks:
// who comes later is held, and does not count.
//
// Every wait is backed by a slow poll, and says in a Wait at which gate it is, for whom, and what clears it. The design
// follows what was measured on etcd v3: no queue looks at more than its neighbour, no watched key holds anything large,
// nothing is decided from a lease but by etcd itself.
package lock
