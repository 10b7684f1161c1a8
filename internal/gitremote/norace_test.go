//go:build !race

package gitremote

const raced = false
