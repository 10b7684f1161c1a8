package system

import "github.com/pullet/pullet/apply"

// Files of the host that belong to no step alone.
const (
	hostnamePath  = "/etc/hostname"
	localtimePath = "/etc/localtime"
	timezonePath  = "/etc/timezone"
	modulesPath   = "/etc/modules"
	modulesDir    = "/etc/modules-load.d"
)

// Paths returns the file of the job.
func (a *CronPresent) Paths(*apply.Host) []string { return []string{cronDir + "/" + a.Name} }

// Paths returns the file of the job.
func (a *CronAbsent) Paths(*apply.Host) []string { return []string{cronDir + "/" + a.Name} }

// Paths returns the file with the names of hosts.
func (a *HostPresent) Paths(*apply.Host) []string { return []string{hostsPath} }

// Paths returns the file with the names of hosts.
func (a *HostAbsent) Paths(*apply.Host) []string { return []string{hostsPath} }

// Paths returns the files in which the host's name stands.
func (a *Hostname) Paths(*apply.Host) []string { return []string{hostnamePath, hostsPath} }

// Paths returns the files in which the zone stands.
func (a *Timezone) Paths(*apply.Host) []string { return []string{localtimePath, timezonePath} }

// Paths returns the file for the boot.
func (a *SysctlPresent) Paths(*apply.Host) []string {
	return []string{a.File}
}

// Paths returns the files for the boot.
func (a *KmodPresent) Paths(*apply.Host) []string { return kmod(a.Name).paths() }

// Paths returns the files for the boot, those of others included.
func (a *KmodAbsent) Paths(*apply.Host) []string {
	return append(kmod(a.Name).paths(), modulesPath, modulesDir+"/")
}

func (m kmod) paths() []string { return []string{m.loadFile(), m.optionsFile()} }
