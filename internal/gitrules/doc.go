// Package gitrules reads the rules that git has for paths: gitignore(5) and gitattributes(5). Anyone who can push a
// commit writes them, so their size is bounded, no pattern takes more time than the product of its length and that of
// the path, and a long match ends with its context.
package gitrules
