//go:build race

package render

// raced: the race detector takes several times the time of the program, out of the same limit.
const raced = true
