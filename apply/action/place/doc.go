// Package place puts files of a host into place: whole files with owner, mode and content, parts of text files, and
// trees. Actions that write files share it. It compares before it writes, so an action's Check and Apply ask the same
// code.
//
// Paths are opened through hostfile. Of the actions it names only the one that removes what is made here.
package place
