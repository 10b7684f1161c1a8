// Package etcdmodel is a model of etcd for tests that run in virtual time (testing/synctest). Tests use it through
// etcd's own client: keys, transactions, leases and watches behave as those of a real etcd do, including their errors,
// and TestModelAgrees holds the model to a real one. In addition it can fail: lines are cut, requests and answers are
// lost, events are dropped, space runs out, and the store goes back to an older revision.
//
// The model has no authentication, no maintenance calls, no previous values in watches and no notices of progress. Its
// client panics when one of them is used.
package etcdmodel
