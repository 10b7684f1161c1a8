// Package event decides which events start which reactions. Hosts put what happens into their outboxes; one agent of
// the fleet, the elected reactor, reads them, counts them for each reaction, and gives runs to hosts. What it decides
// is a pure function of what is on record; every step is one transaction that only the reactor can write, so a reactor
// that dies loses nothing and starts nothing twice.
//
// An event is data from anywhere: any host may tell any event, about any host. It starts nothing but the reactions of
// the repository that the fleet runs, on the hosts that these name.
package event
