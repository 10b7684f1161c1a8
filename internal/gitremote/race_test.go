//go:build race

package gitremote

// raced: the race detector takes several times the memory of the program, out of the same limit.
const raced = true
