// Package agent is one pull from start to end, and the loop that repeats it.
//
// Pull, in pull.go, reads top to bottom: every stage hands a complete value to the next, and nothing calls back.
//
//	Sources --Pull--> Snapshot --Compile(node, view)--> Catalog --Plan--> Plan --Run(gates)--> Report --Publish--> etcd
//
// Loop, in loop.go, repeats it: on a timer with splay, when the fleet's version changes, when a commit is announced,
// and when a file that it depends on changes. Where the configuration says so it listens for webhooks and
// monitoring meanwhile.
package agent
