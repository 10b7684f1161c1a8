// Package hostfile is the one way to touch a host's files. The agent is root, and a job may manage something in a
// directory that belongs to another user, who can put links there and exchange files and directories at any moment. So
// a path is opened component by component, and everything after that is done with descriptors: nothing is looked up
// twice by a name that somebody else can change.
//
// A Root gives an Entry for a path: the open directory that holds it, and its name there. A Dir gives entries below it
// and follows no link. Values are for one goroutine, and are closed by who got them.
//
// Links on the way to an entry are followed by this rule, one component at a time and never above the root:
//   - a link of root's, where only root can change the directories that lead to it, is followed;
//   - any other is followed only when what it leads to belongs to the user who can put a link there, so that the user
//     gains nothing.
//
// Everything else is a *LinkRefused. A file with several names (hard links) that the owner of the directory does not
// own is a *FileRefused, for reading and for changes in place: the other name may be /etc/shadow. Only regular files
// are read.
package hostfile
