// Package trust says who made something that came from outside, and whether they may; and it opens what was encrypted.
//
// What is signed is a git commit or an annotated tag. Its payload is the object without the signature; its signature
// is armored, OpenPGP or SSH, as git writes both. Keys are those that an operator listed: an OpenPGP keyring, and a
// file of allowed signers in the format of ssh-keygen. A signer is the one of them that made a signature, with the
// names that the list gives it. Rules say which signers may change which paths.
//
// A signature of an extension is over a text about it, which package extension reads; it is SSH, in a namespace of its
// own.
//
// What is encrypted is a YAML file that SOPS wrote, for age keys. It says itself which values are, and has a MAC over
// them all: what was changed since is refused.
//
// Nothing here reads a file, a clock or the network: the caller says what the keys are, and at what time a key has to
// be valid.
package trust
