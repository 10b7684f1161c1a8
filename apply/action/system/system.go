// Package system manages what a host has once: its name, time zone, kernel parameters and modules, cron jobs,
// /etc/hosts, its boot.
package system

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name: "cron.present", Summary: "a command that cron runs at its times",
			Needs: apply.Named("user", "user"), New: func() apply.Action { return &CronPresent{User: "root", Mode: "0644"} },
			Shows: apply.Shown{
				Params: []string{"command"}, Where: "every user of the host can read the arguments of commands (ps)",
				Instead: "put it into env",
			},
		},
		{
			Name:    "cron.absent",
			Summary: "no file of this name in /etc/cron.d",
			New:     func() apply.Action { return &CronAbsent{} },
		},
		{
			Name:    "system.hostname",
			Summary: "the host's name, now and at boot",
			New:     func() apply.Action { return &Hostname{} },
		},
		{Name: "system.timezone", Summary: "the host's time zone", New: func() apply.Action { return &Timezone{} }},
		{
			Name:    "system.reboot",
			Summary: "a boot of the host, after which the run goes on",
			New:     func() apply.Action { return &Reboot{} },
		},
		{
			Name:    "sysctl.present",
			Summary: "a kernel parameter with this value, now and at boot",
			New:     func() apply.Action { return &SysctlPresent{} },
			Shows:   apply.Shown{Params: []string{"value"}, Where: "every user of the host can read kernel parameters"},
		},
		{
			Name:    "kmod.present",
			Summary: "a kernel module that is loaded, now and at boot",
			New:     func() apply.Action { return &KmodPresent{Persist: true} },
			Shows:   apply.Shown{Params: []string{"options"}, Where: "every user of the host can read options of modules"},
		},
		{
			Name:    "kmod.absent",
			Summary: "a kernel module that is not loaded",
			New:     func() apply.Action { return &KmodAbsent{} },
		},
		{
			Name:    "host.present",
			Summary: "an address with its names in /etc/hosts",
			New:     func() apply.Action { return &HostPresent{} },
		},
		{
			Name:    "host.absent",
			Summary: "names or an address out of /etc/hosts",
			New:     func() apply.Action { return &HostAbsent{} },
		},
	}
}
