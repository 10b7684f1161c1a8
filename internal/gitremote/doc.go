// Package gitremote is the one git client: it lists what a remote offers and
// fetches packs from it, over http, https, ssh and from repositories on this
// machine. It needs no git program and reads no git configuration.
//
// A git server is not trusted. The work is divided by what hostile bytes can
// do to the reader:
//
//   - This process authenticates (TLS, ssh), because it has the keys, and it
//     reads the framing: http answers, pkt-lines, references, the sideband. All
//     of it is bounded: bytes, lines, references, time. The bytes of a pack are
//     counted, hashed and written to a file of a scratch directory, never
//     parsed; only the header is read, and an object count beyond the limit
//     ends the transfer.
//   - A child process of the same binary inflates objects and applies deltas.
//     It gets the pack as a descriptor that it can only read, and answers with
//     the pack's index through a pipe. It needs no network, no keys and no file
//     that it could write, so it has none of them: see child.go. A second child
//     reads repositories on this machine, with the rights of their owner.
//   - This process checks the index against the pack and moves both into the
//     store. From then on every delta chain in the store is known to be bounded.
//
// Listing stays in this process: its parser is small and strictly bounded, and
// a pull that finds nothing new then costs one request and no process.
package gitremote
