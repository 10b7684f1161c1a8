// Package state is what the fleet and a node remember.
//
// The fleet's record is in etcd, typed: which version is current, which node runs what, who lives, who failed. Open
// reaches a remote etcd, or starts a single embedded member in the node's state directory when no endpoints are given.
//
// The node's own record is on disk: Local (what runs here), reports of past runs, and the kernel lock that keeps two
// runs apart.
package state
