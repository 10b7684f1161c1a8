// Package program replaces pullet by pullet, so that no host is left without one.
//
//	installed   the file that starts as pullet: a step, a package or a person may replace it at any time
//	own         the program of this process, which the installed file was when it began
//	proven      the last program that made a pull on this host: a copy in the state directory
//	refused     a program that was put back, why, and a copy of it
//
// A new installed file is proved first: it reads what this host has (pullet selftest). Then the process goes on as the
// new program by exec(2), under the same pid. When the new program has made a pull, it is the proven one. When it has
// not within a time, the proven one puts itself back: the unit pullet-fallback runs it whenever the installed file
// changes and after each boot, so nothing has to be written before a program is replaced, and a kill at any point
// leaves the decision to files that are there.
package program
