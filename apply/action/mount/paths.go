package mount

import "github.com/pullet/pullet/apply"

// fstabPath is the file with the mounts of the next boot.
const fstabPath = "/etc/fstab"

// Paths returns the mount point, what is mounted where that is a file of the host, and the file with the mounts.
func (a *Mounted) Paths(*apply.Host) []string { return []string{a.Name, a.Device, fstabPath} }

// Paths returns the mount point, and the file with the mounts.
func (a *Unmounted) Paths(*apply.Host) []string { return []string{a.Name, fstabPath} }
