package action_test

import (
	"maps"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// The lab's keys: one that signs its repositories, and one that signs nothing.
const labKey = "/lab/"

const signedRepo = "{name: pullet-signed, url: 'file:/lab/apt-signed', suites: stable, components: main"

// vendorList prepares a whole host: the signed repository is in a file of its own, with its key.
const vendorList = actiontest.NoPackages + "mkdir -p /etc/apt/keyrings; cp " + labKey + "key.asc /etc/apt/keyrings/pullet-vendor.asc\n" +
	"echo 'deb [signed-by=/etc/apt/keyrings/pullet-vendor.asc] file:/lab/apt-signed stable main' >/etc/apt/sources.list.d/pullet-vendor.list\n"

func init() {
	maps.Copy(examples, map[string][]actiontest.Example{
		"pkg.installed": {
			{Name: "install", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hello 2.0"},
			{Name: "the list form", Params: "[{name: pullet-hello}, {refresh: true}]", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hello 2.0 or newer"},
			{Name: "there already", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0")},
			{Name: "a version", Params: "{name: pullet-hello, version: '1.1'}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hello 1.1"},
			{Name: "a version that is there", Params: "{name: pullet-hello, version: 1.0*}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0")},
			{Name: "another version", Params: "{name: pullet-hello, version: '1.1*'}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0"), Want: "pullet-hello 1.0 -> 1.1*"},
			{Name: "a lower version", Params: "{name: pullet-hello, version: '1.0'}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_2.0"), Fails: "pullet-hello is 2.0, and 1.0 is lower: add allowDowngrade: true"},
			{Name: "a lower version as asked", Params: "{name: pullet-hello, version: '1.0', allowDowngrade: true}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_2.0"), Want: "pullet-hello 2.0 -> 1.0"},
			{Name: "several", Params: "{pkgs: [pullet-hello=1.1, pullet-conf], recommends: false}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0"), Want: "pullet-hello 1.0 -> 1.1, install pullet-conf 2.0"},
			{Name: "hold", Params: "{name: pullet-hello, hold: true}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0"), Want: "hold pullet-hello"},
			{Name: "install and hold", Params: "{name: pullet-hello, version: '1.0', hold: true}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hello 1.0, hold pullet-hello"},
			{Name: "held, another version", Params: "{name: pullet-hello, version: '1.1', hold: true}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), Want: "pullet-hello 1.0 -> 1.1"},
			{Name: "unhold", Params: "{name: pullet-hello, hold: false}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), Want: "unhold pullet-hello"},
			{Name: "held by hand", Params: "{name: pullet-hello, version: '1.1'}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), Fails: "pullet-hello is held at 1.0: add hold: true"},
			{Name: "installed for another", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark auto pullet-hello >/dev/null"), Want: "mark pullet-hello as asked for"},
			{Name: "removed, its configuration there", Params: "{name: pullet-conf}", Whole: true, Setup: actiontest.WithPackages("pullet-conf_1.0", "dpkg --remove pullet-conf >/dev/null"), Want: "install pullet-conf 2.0"},
			{Name: "no such package", Params: "{name: pullet-helo}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-helo", Fails: `there is no package pullet-helo in the lists of this host (did you mean "pullet-hello"? or are the lists old? add refresh: true)`},
			{Name: "a name is no pattern", Params: "{name: pullet-hell.}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hell.", Fails: "there is no package pullet-hell. in the lists"},
			{Name: "no such version", Params: "{name: pullet-hello, version: '9'}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hello 9", Fails: "there is no version 9 of pullet-hello in the lists of this host (there is 1.0, 1.1, 2.0;"},
			{Name: "no system", Params: "{name: x}", Fails: "is no system with apt"},
			{Name: "dpkg without apt", Params: "{name: x}", Host: []string{"f var/lib/dpkg/status 644"}, Fails: "no apt-get to manage them with"},
		},
		"pkg.latest": {
			{Name: "install", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.NoPackages, Want: "install pullet-hello"},
			{Name: "newer", Params: "{pkgs: [pullet-hello, pullet-conf]}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0 pullet-conf_1.0"), Want: "pullet-hello 1.0 -> 2.0, pullet-conf 1.0 -> 2.0"},
			{Name: "newest", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_2.0")},
			{Name: "newer, old lists", Params: "{name: pullet-hello, maxAge: 30m}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.1", "touch -d '1 hour ago' /var/lib/apt/lists"), Want: "refresh the package lists", Learns: "pullet-hello 1.1 -> 2.0"},
			{Name: "held", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), Fails: "pullet-hello is held at 1.0, and there is 2.0"},
		},
		"pkg.removed": {
			{Name: "not there", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.NoPackages},
			{Name: "unknown", Params: "{name: pullet-nope, purge: true, autoremove: true}", Whole: true, Setup: actiontest.NoPackages},
			{Name: "remove", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0"), Want: "remove pullet-hello"},
			{Name: "held", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null"), Want: "remove pullet-hello"},
			{Name: "with what needs it", Params: "{name: pullet-hello}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0 pullet-web_1.1"), Want: "remove pullet-hello, and what needs it: pullet-web"},
			{Name: "with what it needed", Params: "{name: pullet-web, autoremove: true, purge: true}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0 pullet-web_1.1", "apt-mark auto pullet-hello >/dev/null"), Want: "purge pullet-web"},
			{Name: "keep the configuration", Params: "{name: pullet-conf}", Whole: true, Setup: actiontest.WithPackages("pullet-conf_2.0"), Want: "remove pullet-conf"},
			{Name: "purge", Params: "{pkgs: [pullet-conf, pullet-hello], purge: true}", Whole: true, Setup: actiontest.WithPackages("pullet-conf_2.0"), Want: "purge pullet-conf"},
			{Name: "purge what was removed", Params: "{name: pullet-conf, purge: true}", Whole: true, Setup: actiontest.WithPackages("pullet-conf_1.0", "dpkg --remove pullet-conf >/dev/null"), Want: "purge the configuration of pullet-conf"},
		},
		"pkg.uptodate": {
			{Name: "up to date", Params: "{}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_2.0")},
			{Name: "upgrade", Params: "{}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0"), Want: "upgrade pullet-hello 1.0 -> 2.0"},
			{Name: "full", Params: "{full: true}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0 pullet-conf_1.0"), Want: "upgrade pullet-conf 1.0 -> 2.0, pullet-hello 1.0 -> 2.0"},
			{Name: "excluded", Params: "{exclude: ['*-hello']}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0 pullet-conf_1.0", "apt-mark auto pullet-hello >/dev/null"), Want: "upgrade pullet-conf 1.0 -> 2.0"},
			{Name: "all excluded", Params: "{exclude: [pullet-*]}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0")},
			{Name: "held", Params: "{}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "apt-mark hold pullet-hello >/dev/null")},
			{Name: "old lists", Params: "{}", Whole: true, Setup: actiontest.WithPackages("pullet-hello_1.0", "touch -d '2 hours ago' /var/lib/apt/lists"), Want: "refresh the package lists", Learns: "upgrade pullet-hello 1.0 -> 2.0"},
		},
		"pkgrepo.managed": {
			{Name: "apt", Params: "{name: app, url: 'https://example.org/debian', suites: bookworm, components: [main, extra], architectures: amd64}", Host: []string{"d etc/apt 755"}, Want: "add the repository"},
			{Name: "apt with a key", Params: "{name: app, url: 'https://example.org/debian', suites: ./, keySource: key.asc}", Host: []string{"d etc/apt 755"}, Files: map[string]string{"key.asc": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----\n"}, Want: "add the key, add the repository"},
			{Name: "apt with a binary key", Params: "{name: app, url: 'https://example.org/debian', suites: ./, keySource: key.gpg}", Host: []string{"d etc/apt 755", "f etc/apt/keyrings/app.asc 644 old"}, Files: map[string]string{"key.gpg": "\x99\x01binary"}, Want: "add the key, add the repository"},
			{Name: "apt, changed", Params: "{name: app, url: 'https://example.org/debian', suites: ./, enabled: false}", Host: []string{"f etc/apt/sources.list.d/app.sources 644 Types: deb\n"}, Want: "repository"},
			{Name: "apt, in place of another file", Params: "{name: app, url: 'https://example.org/debian', suites: ./, replaces: [vendor.list, gone.sources]}", Host: []string{"f etc/apt/sources.list.d/vendor.list 644 deb https://example.org/debian ./\n"},
				Want: "add the repository, remove /etc/apt/sources.list.d/vendor.list"},
			{Name: "apt, the other file is back", Params: "{name: app, url: 'https://example.org/debian', suites: ./, enabled: false, replaces: app.list}", Want: "remove /etc/apt/sources.list.d/app.list",
				Host: []string{"f etc/apt/sources.list.d/app.list 644", "f etc/apt/sources.list.d/app.sources 644 # by pullet\nEnabled: no\nTypes: deb\nURIs: https://example.org/debian\nSuites: ./\n"}},
			{Name: "dnf, in place of another file", Params: "{name: app, url: 'https://example.org/el', replaces: [vendor.repo], refresh: false}", Host: []string{"f etc/yum.repos.d/vendor.repo 644 x"}, Want: "add the repository, remove /etc/yum.repos.d/vendor.repo"},
			{Name: "dnf", Params: "{name: app, url: ['https://a.example.org/el', 'https://b.example.org/el'], priority: 10, refresh: false}", Host: []string{"d etc/yum.repos.d 755"}, Want: "add the repository"},
			{Name: "dnf with a key", Params: "{name: app, metalink: 'https://example.org/el', key: \"-----BEGIN PGP PUBLIC KEY BLOCK-----\\n\", refresh: false}", Host: []string{"d etc/yum.repos.d 755", "f etc/pki/rpm-gpg/RPM-GPG-KEY-app 644 old"}, Want: "key, add the repository"},
			{Name: "dnf with a binary key", Params: "{name: app, url: 'https://example.org/el', keySource: key.gpg}", Host: []string{"d etc/yum.repos.d 755"}, Files: map[string]string{"key.gpg": "\x99\x01binary"}, Fails: "the key is not armored"},
			{Name: "apt's words for dnf", Params: "{name: app, url: 'https://example.org/el', suites: ./}", Host: []string{"d etc/yum.repos.d 755"}, Fails: "are for apt, and this host has dnf"},
			{Name: "dnf's words for apt", Params: "{name: app, metalink: 'https://example.org/el', suites: ./}", Host: []string{"d etc/apt 755"}, Fails: "metalink is for dnf, and this host has apt"},
			{Name: "dnf's priority for apt", Params: "{name: app, url: 'https://example.org/', suites: ./, priority: 3}", Host: []string{"d etc/apt 755"}, Fails: "priority is for dnf"},
			{Name: "apt without suites", Params: "{name: app, url: 'https://example.org/debian'}", Host: []string{"d etc/apt 755"}, Fails: "suites is missing, which apt needs"},
			{Name: "nothing of both", Params: "{name: app, url: 'https://example.org/debian'}", Fails: "has neither /etc/apt nor /etc/yum.repos.d"},
			{Name: "signed", Params: signedRepo + ", keySource: key.asc}", Whole: true, Setup: actiontest.NoPackages, Files: map[string]string{"key.asc": labKey + "key.asc"}, Want: "add the key, add the repository"},
			{Name: "signed, a binary key", Params: signedRepo + ", keySource: key.gpg}", Whole: true, Setup: actiontest.NoPackages, Files: map[string]string{"key.gpg": labKey + "key.gpg"}, Want: "add the key, add the repository"},
			{Name: "signed by another key", Params: signedRepo + ", keySource: other.asc}", Whole: true, Setup: actiontest.NoPackages, Files: map[string]string{"other.asc": labKey + "other.asc"}, Want: "add the key, add the repository", Fails: "pullet-signed: "},
			{Name: "signed, without the key", Params: signedRepo + "}", Whole: true, Setup: actiontest.NoPackages, Want: "add the repository", Fails: "NO_PUBKEY"},
			{Name: "signed, trusted anyway", Params: signedRepo + ", trusted: true}", Whole: true, Setup: actiontest.NoPackages, Want: "add the repository"},
			{Name: "in another file with another key", Params: signedRepo + ", keySource: key.asc}", Whole: true, Setup: vendorList, Files: map[string]string{"key.asc": labKey + "key.asc"}, Want: "add the key, add the repository",
				Fails: "hint: write replaces: [pullet-vendor.list] in the step; the host is as it was"},
			{Name: "in place of another file", Params: signedRepo + ", keySource: key.asc, replaces: pullet-vendor.list}", Whole: true, Setup: vendorList, Files: map[string]string{"key.asc": labKey + "key.asc"},
				Want: "add the key, add the repository, remove /etc/apt/sources.list.d/pullet-vendor.list"},
			{Name: "a component that it does not have", Params: "{name: pullet-signed, url: 'file:/lab/apt-signed', suites: stable, components: [main, extra], keySource: key.asc}", Whole: true, Setup: actiontest.NoPackages,
				Files: map[string]string{"key.asc": labKey + "key.asc"}, Want: "add the key, add the repository", Fails: `the repository has no component "extra"`},
			{Name: "not there", Params: "{name: pullet-nope, url: 'http://lab:8080/nope', suites: ./, trusted: true}", Whole: true, Setup: actiontest.NoPackages, Want: "add the repository", Fails: "the host is as it was"},
			{Name: "not there, not tried", Params: "{name: pullet-nope, url: 'http://lab:8080/nope', suites: ./, trusted: true, refresh: false}", Whole: true, Setup: actiontest.NoPackages, Want: "add the repository"},
		},
		"pkgrepo.absent": {
			{Name: "not there", Params: "{name: app}", Host: []string{"d etc/apt 755"}},
			{Name: "apt", Params: "{name: app}", Host: []string{"f etc/apt/sources.list.d/app.sources 644", "f etc/apt/keyrings/app.gpg 644", "f etc/apt/sources.list.d/other.sources 644"}, Want: "remove /etc/apt/sources.list.d/app.sources, /etc/apt/keyrings/app.gpg"},
			{Name: "dnf", Params: "{name: app}", Host: []string{"f etc/yum.repos.d/app.repo 644"}, Want: "remove /etc/yum.repos.d/app.repo"},
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
		{"pkgrepo.managed", "{name: a, url: 'http://x/', replaces: ../x.list}", `replaces: "../x.list" is not a file of repositories`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', replaces: [x]}", `replaces: "x" is not a file of repositories; write NAME.list, NAME.sources or NAME.repo`},
		{"pkgrepo.managed", "{name: a, url: 'http://x/', replaces: [a.sources]}", `replaces: "a.sources" is the file that the step makes`},
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

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
