// Package membership decides how the members of a fleet's datastore change: which host becomes one, and which is one no
// more.
//
// A cluster has voters and learners. A voter counts for the quorum, more than half of all voters, without which nothing
// is written. A learner gets the record and counts for nothing: a host begins as one, and is promoted when it caught
// up. So a host that never comes cannot cost the quorum. Leaving voters are those that are dead, that the repository
// names no more, or that an operator moves away.
//
// A voter that leaves while it answers does so after its successor became a voter: so the datastore bears the same
// faults all the time, and has one voter more for a while. Who is away makes place before its successor becomes a
// voter, and where etcd takes no learner, even before that one begins: of three voters with one away etcd takes none.
//
// Next is a pure function: it looks at a cluster and says what to do next, one step at a time. Who carries it out looks
// again behind each step.
package membership
