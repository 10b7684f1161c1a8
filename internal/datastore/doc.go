// Package datastore is the fleet's own etcd, as one host keeps it: a member with TLS that knows each client by the
// certificate of the fleet's authority, and the keeper, who manages its users.
//
// A datastore is a directory with the authority, the credentials of the server and of the keeper, and the data of the
// member. Run serves it: the member, the keeper, and the door at which new hosts ask for their certificate.
//
// The record of the fleet says who may connect: identities, which the keeper issues, and invitations, with which
// somebody gets one. What the keeper does next is a pure function of the record, the users of etcd and the time
// (decide); it acts in one goroutine.
//
// Backup packs a snapshot of the record into a file that the keeper signs, encrypted where recipients are named; the
// keeper has a second goroutine that does so on a schedule. Restoring makes the record from such a file.
package datastore
