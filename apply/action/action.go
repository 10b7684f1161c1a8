// Package action holds the built-in actions; the files of an action begin with its name.
//
// An action is a struct whose fields are its parameters. Check compares the host with them and never writes; Apply makes the
// next Check empty; Bind finds what is wrong with the parameters before anything is touched. Check of one action never relies on
// what an earlier step would have made, so that a plan works on a host where nothing is there yet.
//
// To add one: a file with the type, a line in All, and examples for the contract test.
package action

import "github.com/pullet/pullet/apply"

// All lists the built-in actions in the order of the documentation.
func All() []apply.Spec {
	return []apply.Spec{
		{Name: "cmd.run", Summary: "run a command", New: func() apply.Action { return &CmdRun{} }},
		{Name: "cmd.script", Summary: "run a script", New: func() apply.Action { return &CmdScript{} }},
		{Name: "http.request", Summary: "a request to a web server", New: newHTTPRequest},
		{Name: "file.managed", Summary: "a regular file with this content, owner and mode", New: func() apply.Action { return &FileManaged{Replace: true} }},
		{Name: "file.line", Summary: "a line in a text file", New: func() apply.Action { return &FileLine{State: present} }},
		{Name: "file.block", Summary: "a text between two marker lines of a file", New: func() apply.Action { return &FileBlock{State: present} }},
		{Name: "file.directory", Summary: "a directory with this owner and mode", New: func() apply.Action { return &FileDirectory{} }},
		{Name: "file.symlink", Summary: "a symbolic link to this target", New: func() apply.Action { return &FileSymlink{} }},
		{Name: "file.absent", Summary: "nothing at this path", New: func() apply.Action { return &FileAbsent{} }},
		{Name: "file.content", Summary: "a file of this host, read for later steps", Passive: true, New: func() apply.Action { return &FileContent{Recursive: true} }},
		{Name: "archive.extracted", Summary: "a directory with what an archive holds", New: func() apply.Action { return &ArchiveExtracted{} }},
		{Name: "git.checkout", Summary: "a directory with the files of a git repository", New: newGitCheckout},
		{Name: "pkg.installed", Summary: "packages that are installed, in this version", New: func() apply.Action { return &PkgInstalled{PkgConfFiles: newPkgConfFiles(), PkgLock: newPkgLock()} }},
		{Name: "pkg.latest", Summary: "packages in the newest version", New: func() apply.Action {
			return &PkgLatest{PkgAge: newPkgAge(), PkgConfFiles: newPkgConfFiles(), PkgLock: newPkgLock()}
		}},
		{Name: "pkg.removed", Summary: "packages that are not installed", New: func() apply.Action { return &PkgRemoved{PkgLock: newPkgLock()} }},
		{Name: "pkg.uptodate", Summary: "all packages in the newest version", New: func() apply.Action {
			return &PkgUptodate{PkgAge: newPkgAge(), PkgConfFiles: newPkgConfFiles(), PkgLock: newPkgLock()}
		}},
		{Name: "pkgrepo.managed", Summary: "a package repository that the host uses", New: func() apply.Action {
			return &PkgrepoManaged{Enabled: true, Refresh: true, PkgLock: newPkgLock()}
		}},
		{Name: "pkgrepo.absent", Summary: "a package repository that the host does not use", New: func() apply.Action { return &PkgrepoAbsent{PkgLock: newPkgLock()} }},
		{Name: "service.ensure", Summary: "a unit of systemd that runs or not, now and after a boot", New: func() apply.Action { return &ServiceEnsure{Settle: serviceSettle} }},
		{Name: "service.publish", Summary: "this host's instance of a service, known to the fleet", New: func() apply.Action { return &ServicePublish{} }},
		{Name: "service.withdraw", Summary: "no instance of a service on this host", New: func() apply.Action { return &ServiceWithdraw{} }},
		{Name: "service.wait", Summary: "wait until enough hosts offer a service", Passive: true, New: func() apply.Action { return &ServiceWait{} }},
		{Name: "user.present", Summary: "a user with these groups, home, shell and password", New: func() apply.Action { return &UserPresent{AppendGroups: true} }},
		{Name: "user.absent", Summary: "no user of this name", New: func() apply.Action { return &UserAbsent{} }},
		{Name: "group.present", Summary: "a group with this number and these members", New: func() apply.Action { return &GroupPresent{AppendMembers: true} }},
		{Name: "group.absent", Summary: "no group of this name", New: func() apply.Action { return &GroupAbsent{} }},
		{Name: "ssh.authorized_key", Summary: "public keys with which one can log in as a user", New: func() apply.Action { return &SSHAuthorizedKey{State: "present"} }},
		{Name: "ssh.known_host", Summary: "the public key by which ssh knows a host", New: func() apply.Action { return &SSHKnownHost{Port: 22, State: "present"} }},
		{Name: "cron.present", Summary: "a command that cron runs at its times", New: func() apply.Action { return &CronPresent{User: "root", Mode: "0644"} }},
		{Name: "cron.absent", Summary: "no file of this name in /etc/cron.d", New: func() apply.Action { return &CronAbsent{} }},
		{Name: "system.hostname", Summary: "the host's name, now and at boot", New: func() apply.Action { return &SystemHostname{} }},
		{Name: "system.timezone", Summary: "the host's time zone", New: func() apply.Action { return &SystemTimezone{} }},
		{Name: "system.reboot", Summary: "a boot of the host, after which the run goes on", New: func() apply.Action { return &SystemReboot{} }},
		{Name: "sysctl.present", Summary: "a kernel parameter with this value, now and at boot", New: func() apply.Action { return &SysctlPresent{} }},
		{Name: "kmod.present", Summary: "a kernel module that is loaded, now and at boot", New: func() apply.Action { return &KmodPresent{Persist: true} }},
		{Name: "kmod.absent", Summary: "a kernel module that is not loaded", New: func() apply.Action { return &KmodAbsent{} }},
		{Name: "mount.mounted", Summary: "a mounted file system, now and at boot", New: func() apply.Action { return &MountMounted{FSType: "auto", Persist: true} }},
		{Name: "mount.unmounted", Summary: "a directory where nothing is mounted", New: func() apply.Action { return &MountUnmounted{Persist: true} }},
		{Name: "host.present", Summary: "an address with its names in /etc/hosts", New: func() apply.Action { return &HostPresent{} }},
		{Name: "host.absent", Summary: "names or an address out of /etc/hosts", New: func() apply.Action { return &HostAbsent{} }},
		{Name: "time.sleep", Summary: "wait for a time", Passive: true, New: func() apply.Action { return &TimeSleep{} }},
		{Name: "time.sleep_rand", Summary: "wait for a random time", Passive: true, New: func() apply.Action { return &TimeSleepRand{} }},
		{Name: "template.expression", Summary: "compute a text for later steps", Passive: true, New: func() apply.Action { return &TemplateExpression{} }},
		{Name: "test.succeed", Summary: "do nothing and succeed, for trying things out", New: func() apply.Action { return &TestSucceed{} }},
		{Name: "test.change", Summary: "do nothing and say that something changed", New: func() apply.Action { return &TestChange{} }},
		{Name: "test.fail", Summary: "fail", New: func() apply.Action { return &TestFail{} }},
		{Name: "test.echo", Summary: "say a message", Passive: true, New: func() apply.Action { return &TestEcho{} }},
	}
}
