package actiontest

import "strings"

// NoPackages prepares a whole host: it takes the lab's packages from a host, whatever state they are in, and
// fetches its lists.
const NoPackages = `names="pullet-web pullet-hello pullet-conf pullet-broken pullet-slow pullet-signed"
if dpkg-query -W $names >/dev/null 2>&1 || grep -q '^Package: pullet-' /var/lib/dpkg/status; then
	for n in $names; do for s in prerm postrm postinst; do
		f=/var/lib/dpkg/info/$n.$s; if [ -e $f ]; then printf '#!/bin/sh\n' >$f; fi
	done; done
	for n in $names; do echo "$n install"; done | dpkg --set-selections 2>/dev/null || true
	dpkg --purge --force-all $names >/dev/null 2>&1 || true
fi
rm -rf /etc/apt/sources.list.d/pullet-* /etc/apt/keyrings /var/lib/apt/lists/*apt-signed*
if [ -e /var/lib/apt/lists/_lab_apt_._Packages ]; then touch /var/lib/apt/lists; else apt-get update -qq; fi
`

// WithPackages is NoPackages, then these packages of the lab, each NAME_VERSION, and then more commands.
func WithPackages(packages string, more ...string) string {
	install := "cd /lab/apt; for p in " + packages + "; do dpkg -i ${p}_amd64.deb >/dev/null; done\n"
	return NoPackages + install + strings.Join(more, "\n")
}

// WholeUnit is a setup on a whole host: a unit of this name, stopped, that its [Service] section describes.
func WholeUnit(name, section string) string {
	path := "/etc/systemd/system/" + name
	stop := "systemctl disable -q --now " + name + " 2>/dev/null || true; "
	return stop + "printf '%s\\n' '[Service]' '" + section + "' '[Install]' " +
		"WantedBy=multi-user.target >" + path + "; systemctl daemon-reload"
}
