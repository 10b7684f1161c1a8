package action_test

import (
	"maps"
	"strings"
)

// noPackages takes the lab's packages from a host, whatever state they are in, and has its lists fetched.
const noPackages = `names="pullet-web pullet-hello pullet-conf pullet-broken pullet-slow pullet-signed"
if dpkg-query -W $names >/dev/null 2>&1 || grep -q '^Package: pullet-' /var/lib/dpkg/status; then
	for n in $names; do for s in prerm postrm postinst; do f=/var/lib/dpkg/info/$n.$s; if [ -e $f ]; then printf '#!/bin/sh\n' >$f; fi; done; done
	for n in $names; do echo "$n install"; done | dpkg --set-selections 2>/dev/null || true
	dpkg --purge --force-all $names >/dev/null 2>&1 || true
fi
rm -rf /etc/apt/sources.list.d/pullet-* /etc/apt/keyrings /var/lib/apt/lists/*apt-signed*
if [ -e /var/lib/apt/lists/_lab_apt_._Packages ]; then touch /var/lib/apt/lists; else apt-get update -qq; fi
`

// with has packages installed, each NAME_VERSION.
func with(packages string, more ...string) string {
	return noPackages + "cd /lab/apt; for p in " + packages + "; do dpkg -i ${p}_amd64.deb >/dev/null; done\n" + strings.Join(more, "\n")
}

// The lab's keys: one that signs its repositories, and one that signs nothing.
const labKey = "/lab/"

const signedRepo = "{name: pullet-signed, url: 'file:/lab/apt-signed', suites: stable, components: main"

func init() {
	maps.Copy(examples, map[string][]example{
		"pkg.installed": {
			{name: "install", params: "{name: pullet-hello}", whole: true, setup: noPackages, want: "install pullet-hello 2.0"},
			{name: "the list form", params: "[{name: pullet-hello}, {refresh: true}]", whole: true, setup: noPackages, want: "install pullet-hello 2.0 or newer"},
			{name: "there already", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_1.0")},
			{name: "a version", params: "{name: pullet-hello, version: '1.1'}", whole: true, setup: noPackages, want: "install pullet-hello 1.1"},
			{name: "a version that is there", params: "{name: pullet-hello, version: 1.0*}", whole: true, setup: with("pullet-hello_1.0")},
			{name: "another version", params: "{name: pullet-hello, version: '1.1*'}", whole: true, setup: with("pullet-hello_1.0"), want: "pullet-hello 1.0 -> 1.1*"},
			{name: "a lower version", params: "{name: pullet-hello, version: '1.0'}", whole: true, setup: with("pullet-hello_2.0"), fails: "pullet-hello is 2.0, and 1.0 is lower: add allowDowngrade: true"},
			{name: "a lower version as asked", params: "{name: pullet-hello, version: '1.0', allowDowngrade: true}", whole: true, setup: with("pullet-hello_2.0"), want: "pullet-hello 2.0 -> 1.0"},
			{name: "several", params: "{pkgs: [pullet-hello=1.1, pullet-conf], recommends: false}", whole: true, setup: with("pullet-hello_1.0"), want: "pullet-hello 1.0 -> 1.1, install pullet-conf 2.0"},
			{name: "hold", params: "{name: pullet-hello, hold: true}", whole: true, setup: with("pullet-hello_1.0"), want: "hold pullet-hello"},
			{name: "install and hold", params: "{name: pullet-hello, version: '1.0', hold: true}", whole: true, setup: noPackages, want: "install pullet-hello 1.0, hold pullet-hello"},
			{name: "held, another version", params: "{name: pullet-hello, version: '1.1', hold: true}", whole: true, setup: with("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), want: "pullet-hello 1.0 -> 1.1"},
			{name: "unhold", params: "{name: pullet-hello, hold: false}", whole: true, setup: with("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), want: "unhold pullet-hello"},
			{name: "held by hand", params: "{name: pullet-hello, version: '1.1'}", whole: true, setup: with("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), fails: "pullet-hello is held at 1.0: add hold: true"},
			{name: "installed for another", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_1.0", "apt-mark auto pullet-hello >/dev/null"), want: "mark pullet-hello as asked for"},
			{name: "removed, its configuration there", params: "{name: pullet-conf}", whole: true, setup: with("pullet-conf_1.0", "dpkg --remove pullet-conf >/dev/null"), want: "install pullet-conf 2.0"},
			{name: "no such package", params: "{name: pullet-helo}", whole: true, setup: noPackages, want: "install pullet-helo", fails: `there is no package pullet-helo in the lists of this host (did you mean "pullet-hello"? or are the lists old? add refresh: true)`},
			{name: "a name is no pattern", params: "{name: pullet-hell.}", whole: true, setup: noPackages, want: "install pullet-hell.", fails: "there is no package pullet-hell. in the lists"},
			{name: "no such version", params: "{name: pullet-hello, version: '9'}", whole: true, setup: noPackages, want: "install pullet-hello 9", fails: "there is no version 9 of pullet-hello in the lists of this host (there is 1.0, 1.1, 2.0;"},
			{name: "no system", params: "{name: x}", fails: "is no system with apt"},
			{name: "dpkg without apt", params: "{name: x}", host: []string{"f var/lib/dpkg/status 644"}, fails: "no apt-get to manage them with"},
		},
		"pkg.latest": {
			{name: "install", params: "{name: pullet-hello}", whole: true, setup: noPackages, want: "install pullet-hello"},
			{name: "newer", params: "{pkgs: [pullet-hello, pullet-conf]}", whole: true, setup: with("pullet-hello_1.0 pullet-conf_1.0"), want: "pullet-hello 1.0 -> 2.0, pullet-conf 1.0 -> 2.0"},
			{name: "newest", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_2.0")},
			{name: "newer, old lists", params: "{name: pullet-hello, maxAge: 30m}", whole: true, setup: with("pullet-hello_1.1", "touch -d '1 hour ago' /var/lib/apt/lists"), want: "refresh the package lists"},
			{name: "held", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), fails: "pullet-hello is held at 1.0, and there is 2.0"},
		},
		"pkg.removed": {
			{name: "not there", params: "{name: pullet-hello}", whole: true, setup: noPackages},
			{name: "unknown", params: "{name: pullet-nope, purge: true, autoremove: true}", whole: true, setup: noPackages},
			{name: "remove", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_1.0"), want: "remove pullet-hello"},
			{name: "held", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), want: "remove pullet-hello"},
			{name: "with what needs it", params: "{name: pullet-hello}", whole: true, setup: with("pullet-hello_1.0 pullet-web_1.1"), want: "remove pullet-hello, and what needs it: pullet-web"},
			{name: "with what it needed", params: "{name: pullet-web, autoremove: true, purge: true}", whole: true, setup: with("pullet-hello_1.0 pullet-web_1.1", "apt-mark auto pullet-hello >/dev/null"), want: "purge pullet-web"},
			{name: "keep the configuration", params: "{name: pullet-conf}", whole: true, setup: with("pullet-conf_2.0"), want: "remove pullet-conf"},
			{name: "purge", params: "{pkgs: [pullet-conf, pullet-hello], purge: true}", whole: true, setup: with("pullet-conf_2.0"), want: "purge pullet-conf"},
			{name: "purge what was removed", params: "{name: pullet-conf, purge: true}", whole: true, setup: with("pullet-conf_1.0", "dpkg --remove pullet-conf >/dev/null"), want: "purge the configuration of pullet-conf"},
		},
		"pkg.uptodate": {
			{name: "up to date", params: "{}", whole: true, setup: with("pullet-hello_2.0")},
			{name: "upgrade", params: "{}", whole: true, setup: with("pullet-hello_1.0"), want: "upgrade pullet-hello"},
			{name: "full", params: "{full: true}", whole: true, setup: with("pullet-hello_1.0 pullet-conf_1.0"), want: "upgrade pullet-conf, pullet-hello"},
			{name: "excluded", params: "{exclude: ['*-hello']}", whole: true, setup: with("pullet-hello_1.0 pullet-conf_1.0", "apt-mark auto pullet-hello >/dev/null"), want: "upgrade pullet-conf"},
			{name: "all excluded", params: "{exclude: [pullet-*]}", whole: true, setup: with("pullet-hello_1.0")},
			{name: "held", params: "{}", whole: true, setup: with("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null")},
			{name: "old lists", params: "{}", whole: true, setup: with("pullet-hello_1.0", "touch -d '2 hours ago' /var/lib/apt/lists"), want: "refresh the package lists"},
		},
		"pkgrepo.managed": {
			{name: "apt", params: "{name: app, url: 'https://example.org/debian', suites: bookworm, components: [main, extra], architectures: amd64}", host: []string{"d etc/apt 755"}, want: "add the repository"},
			{name: "apt with a key", params: "{name: app, url: 'https://example.org/debian', suites: ./, keySource: key.asc}", host: []string{"d etc/apt 755"}, files: map[string]string{"key.asc": aKey}, want: "add the key, add the repository"},
			{name: "apt with a binary key", params: "{name: app, url: 'https://example.org/debian', suites: ./, keySource: key.gpg}", host: []string{"d etc/apt 755", "f etc/apt/keyrings/app.asc 644 old"}, files: map[string]string{"key.gpg": "\x99\x01binary"}, want: "add the key, add the repository"},
			{name: "apt, changed", params: "{name: app, url: 'https://example.org/debian', suites: ./, enabled: false}", host: []string{"f etc/apt/sources.list.d/app.sources 644 Types: deb\n"}, want: "repository"},
			{name: "dnf", params: "{name: app, url: ['https://a.example.org/el', 'https://b.example.org/el'], priority: 10, refresh: false}", host: []string{"d etc/yum.repos.d 755"}, want: "add the repository"},
			{name: "dnf with a key", params: "{name: app, metalink: 'https://example.org/el', key: \"-----BEGIN PGP PUBLIC KEY BLOCK-----\\n\", refresh: false}", host: []string{"d etc/yum.repos.d 755", "f etc/pki/rpm-gpg/RPM-GPG-KEY-app 644 old"}, want: "key, add the repository"},
			{name: "dnf with a binary key", params: "{name: app, url: 'https://example.org/el', keySource: key.gpg}", host: []string{"d etc/yum.repos.d 755"}, files: map[string]string{"key.gpg": "\x99\x01binary"}, fails: "the key is not armored"},
			{name: "apt's words for dnf", params: "{name: app, url: 'https://example.org/el', suites: ./}", host: []string{"d etc/yum.repos.d 755"}, fails: "are for apt, and this host has dnf"},
			{name: "dnf's words for apt", params: "{name: app, metalink: 'https://example.org/el', suites: ./}", host: []string{"d etc/apt 755"}, fails: "metalink is for dnf, and this host has apt"},
			{name: "dnf's priority for apt", params: "{name: app, url: 'https://example.org/', suites: ./, priority: 3}", host: []string{"d etc/apt 755"}, fails: "priority is for dnf"},
			{name: "apt without suites", params: "{name: app, url: 'https://example.org/debian'}", host: []string{"d etc/apt 755"}, fails: "suites is missing, which apt needs"},
			{name: "nothing of both", params: "{name: app, url: 'https://example.org/debian'}", fails: "has neither /etc/apt nor /etc/yum.repos.d"},
			{name: "signed", params: signedRepo + ", keySource: key.asc}", whole: true, setup: noPackages, files: map[string]string{"key.asc": labKey + "key.asc"}, want: "add the key, add the repository"},
			{name: "signed, a binary key", params: signedRepo + ", keySource: key.gpg}", whole: true, setup: noPackages, files: map[string]string{"key.gpg": labKey + "key.gpg"}, want: "add the key, add the repository"},
			{name: "signed by another key", params: signedRepo + ", keySource: other.asc}", whole: true, setup: noPackages, files: map[string]string{"other.asc": labKey + "other.asc"}, want: "add the key, add the repository", fails: "pullet-signed: "},
			{name: "signed, without the key", params: signedRepo + "}", whole: true, setup: noPackages, want: "add the repository", fails: "NO_PUBKEY"},
			{name: "signed, trusted anyway", params: signedRepo + ", trusted: true}", whole: true, setup: noPackages, want: "add the repository"},
			{name: "not there", params: "{name: pullet-nope, url: 'http://lab:8080/nope', suites: ./, trusted: true}", whole: true, setup: noPackages, want: "add the repository", fails: "the host is as it was"},
			{name: "not there, not tried", params: "{name: pullet-nope, url: 'http://lab:8080/nope', suites: ./, trusted: true, refresh: false}", whole: true, setup: noPackages, want: "add the repository"},
		},
		"pkgrepo.absent": {
			{name: "not there", params: "{name: app}", host: []string{"d etc/apt 755"}},
			{name: "apt", params: "{name: app}", host: []string{"f etc/apt/sources.list.d/app.sources 644", "f etc/apt/keyrings/app.gpg 644", "f etc/apt/sources.list.d/other.sources 644"}, want: "remove /etc/apt/sources.list.d/app.sources, /etc/apt/keyrings/app.gpg"},
			{name: "dnf", params: "{name: app}", host: []string{"f etc/yum.repos.d/app.repo 644"}, want: "remove /etc/yum.repos.d/app.repo"},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"pkg.installed", "{refresh: true}", "name: which packages? write name: NAME"},
		{"pkg.installed", "{name: a, pkgs: [b]}", "jobs/a.yaml:4:31: pkgs: name and pkgs exclude each other"},
		{"pkg.installed", "{pkgs: [b], version: 1}", "version: belongs to name: in pkgs write NAME=VERSION"},
		{"pkg.installed", "{name: a=1}", `jobs/a.yaml:4:22: name: "a=1" is not a package's name: the version is a parameter of its own`},
		{"pkg.installed", "{name: a-}", `name: "a-" is not a package's name`},
		{"pkg.installed", "{name: --help}", `name: "--help" is not a package's name`},
		{"pkg.installed", "{pkgs: [a, 'b c']}", `pkgs: "b c" is not a package's name`},
		{"pkg.installed", "{pkgs: [a=]}", `pkgs: "a=" has no version behind the equals sign`},
		{"pkg.installed", "{pkgs: [a, a=1]}", "pkgs: a stands here twice"},
		{"pkg.installed", "{name: a, version: '>= 2'}", `jobs/a.yaml:4:34: version: ">= 2" is not a version: write it as it is (1.2-3), or how it begins (1.2*)`},
		{"pkg.installed", "{name: a, version: '1*2'}", `version: "1*2" is not a version`},
		{"pkg.installed", "{name: a, conffiles: ask}", `conffiles: expected keep or replace, found "ask"`},
		{"pkg.latest", "{}", "name: which packages?"},
		{"pkg.latest", "{pkgs: [a=1]}", "pkgs: pkg.latest takes no versions: use pkg.installed"},
		{"pkg.latest", "{name: a, maxAge: 0s}", "jobs/a.yaml:4:33: maxAge: 0s is too short"},
		{"pkg.removed", "{pkgs: [a=1]}", "pkgs: pkg.removed takes no versions"},
		{"pkg.removed", "{}", "name: which packages?"},
		{"pkg.uptodate", "{exclude: ['[']}", `exclude: "[" is neither a package's name nor a glob`},
		{"pkg.uptodate", "{maxAge: 1s}", "maxAge: 1s is too short"},
		{"pkgrepo.managed", "{name: a/b, url: 'http://x/'}", `name: "a/b" cannot be the name of a file`},
		{"pkgrepo.managed", "{name: a}", "url: is missing: where is the repository?"},
		{"pkgrepo.managed", "{name: a, url: /x}", `url: "/x" is not a URL: write https://... or file:/...`},
		{"pkgrepo.managed", "{name: a, metalink: /x}", `metalink: "/x" is not a URL`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', suites: stable}", `suites: "stable" needs components`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', suites: ./, components: main}", "components: a suite that ends with / is a directory"},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', suites: s, components: 'main contrib'}", `components: "main contrib" is not one word: write a list`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', types: rpm}", `types: "rpm" is neither deb nor deb-src`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', key: abc}", "key: is not an armored public key"},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', key: abc, keySource: k}", "keySource: key and keySource exclude each other"},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', keySource: nope}", "keySource: there is no files/nope"},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', keySource: 'https://x/k'}", "keySource: a key from an address needs keyDigest"},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', keySource: bad, keyDigest: md5:1}", `keyDigest: "md5:1" is no digest`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', keySource: bad, keyDigest: 'sha256:" + zeros + "'}", "keyDigest: the key has sha256:"},
		{"pkgrepo.absent", "{name: ../x}", `name: "../x" cannot be the name of a file`},
	}...)
}

const (
	zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	aKey  = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----\n"
)
