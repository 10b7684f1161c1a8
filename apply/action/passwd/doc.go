// Package passwd reads the host's own passwd, group and shadow files, beneath its root; see passwd(5), group(5) and
// shadow(5). The C library's look-ups would ask the machine that pullet runs on, and its directory services.
package passwd
