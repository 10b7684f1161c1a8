package action_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/tier"
)

// neverDrawn are the actions for which TestSettle draws no parameters, each with the reason.
var neverDrawn = map[string]string{
	"pkg.installed": "needs a whole host", "pkg.latest": "needs a whole host", "pkg.removed": "needs a whole host",
	"pkg.uptodate": "needs a whole host", "system.reboot": "needs a whole host", "test.fail": "always fails",
	"http.request": "changes nothing on the host",
	"service.wait": "changes nothing, and waits",
}

// leftOut are the parameters that TestSettle never sets, each with the reason.
var leftOut = map[string]string{
	"file.managed.from": "needs another step", "file.managed.digest": "needs a web server",
	"git.checkout.auth": "needs a server", "git.checkout.tls": "needs a server",
	"pkgrepo.managed.keyDigest": "needs a web server",
	"pkgrepo.managed.metalink":  "is for dnf", "pkgrepo.managed.priority": "is for dnf",
	"pkgrepo.managed.lockTimeout": "needs another program", "pkgrepo.absent.lockTimeout": "needs another program",
}

type (
	list = []any
	dict = map[string]any
)

// drawn are values for parameters. The key is an action and a parameter, or a parameter of any action. A parameter that
// is true or false, or that has words, needs none.
var drawn = map[string]list{
	"mode": {"0644", "0600", "755", "2750", "1777", "4755", "0400"}, "fileMode": {"0640", "0444", "4755"},
	"dirMode": {"0750", "2775", "0555"}, "owner": {"0", "alice", "1500", "root"}, "group": {"0", "users", "1500"},
	"validate": {"true %s", "test -f %s"}, "exclude": {list{"*.local"}, list{"sub/*", "l"}},
	"timeout": {"10s"}, "time": {"1ms", "0s"}, "message": {"fine"}, "after": {"^b", "nothing", "$"}, "before": {"^b", "."},
	"cwd": {"/srv", "/srv/dir/sub"}, "env": {dict{"A": "1", "B": " it's "}}, "user": {"alice", "root"},
	"creates": {"/srv/made"}, "removes": {"/srv/gone"}, "unless": {`test -e "$PULLET_ROOT/srv/made"`},
	"onlyif": {`test -e "$PULLET_ROOT/srv/gone"`}, "changed": {"result.ExitCode == 0"}, "failed": {"result.ExitCode > 9"},
	"data":   {dict{"a": 1, "b": list{"x", nil}, "c": dict{"d": true}}, list{"x", 1.5}, "text", 0},
	"strip":  {0, 1},
	"system": {true}, "tags": {list{"a", "b"}}, "port": {80, 5432}, "address": {"192.0.2.9"},
	"interface": {"eth0", "eth1"}, "comment": {"# x", "", "one two"},

	"cmd.run.cmd": {`touch "$PULLET_ROOT/srv/made"; rm -f "$PULLET_ROOT/srv/gone"`}, "cmd.run.user": {"root"},
	"cmd.script.script": {"#!/bin/sh\ntouch \"$PULLET_ROOT/srv/made\"; rm -f \"$PULLET_ROOT/srv/gone\"\n"},
	"cmd.script.source": {"script.sh"}, "cmd.script.user": {"root"}, "cmd.script.args": {list{"a", "b c"}},
	"cmd.script.interpreter": {"/bin/sh", list{"/bin/sh", "-e"}},

	"file.managed.name":    {"/srv/plain", "/srv/new", "/srv/deep/new", "/srv/link", "/srv/hard1", "/srv/dir", "/srv/made.json", "/srv/o'd*"},
	"file.managed.content": {"", "one\n", "one", "a\r\nb\r\n", "\ufeffx\n", "ä\n\n"},
	"file.managed.source":  {"text", "empty", "block", "tree", "script.sh"},
	"file.line.name":       {"/srv/plain", "/srv/new", "/srv/crlf", "/srv/bom", "/srv/cut", "/srv/link", "/srv/hard1", "/srv/empty", "/srv/mode"},
	"file.line.line":       {"b", "bee", "b = 1", " x", "#", "a\\b"}, "file.line.match": {"^b", "^b( =|$)", "a|b", "^$", "."},
	"file.block.name":    {"/srv/plain", "/srv/new", "/srv/crlf", "/srv/bom", "/srv/cut", "/srv/link", "/srv/hard1", "/srv/empty", "/srv/block"},
	"file.block.content": {"x", "x\n", "x\ny\n\n", "", "a\r\nb\r\n", "\n"}, "file.block.source": {"block", "text", "empty"},
	"file.block.marker": {"pullet", "two words"}, "file.block.comment": {"#", "//", ";"},
	"file.block.begin": {"<!-- begin -->"}, "file.block.end": {"<!-- end -->"},
	"file.directory.name": {"/srv/dir", "/srv/new", "/srv/dir/sub", "/srv/full", "/srv/o'd*/d"},
	"file.symlink.name":   {"/srv/link", "/srv/new", "/srv/plain", "/srv/deep/l", "/srv/dangling", "/srv/hard1"},
	"file.symlink.target": {"plain", "/srv/plain", "../srv//plain", "nowhere", "/srv/dir/", "."},
	"file.absent.name":    {"/srv/dir", "/srv/link", "/srv/hard1", "/srv/new", "/srv/plain", "/srv/full", "/srv/o'd*", "/srv/dir/l"},
	"file.content.name":   {"/srv/plain", "/srv/dir/sub", "/srv/link"},

	"archive.extracted.name": {"/srv/dir", "/srv/new", "/srv/deep/x", "/srv/full"},
	"archive.extracted.source": {
		"app.tar", "app.tgz", "app.xz", "app.zst", "app.zip", "hard", "twice", "odd.tar", "/srv/app.tar",
	},
	"archive.extracted.digest": {actiontest.SumOf(actiontest.Tarball(actiontest.App...))},
	"archive.extracted.mode":   {"0750", "0755"}, "archive.extracted.dirMode": {"0750", "0555"},
	"git.checkout.name": {"/srv/new", "/srv/empty.d", "/srv/deep/x"}, "git.checkout.url": {"/srv/up.git", "file:///srv/up.git"},
	"git.checkout.ref": {"main", "old", "v1", "HEAD"}, "git.checkout.depth": {0, 1, 5},
	"git.checkout.timeout": {"1m"},

	"user.present.name": {"alice", "bob", "root"}, "user.present.uid": {1500, 1700}, "user.present.group": {"alice", "users", "100"},
	"user.present.groups": {list{}, list{"wheel"}, list{"10", "docker"}, list{"users", "alice", "wheel"}, list{"wheel", "wheel"}},
	"user.present.home":   {"/home/alice", "/srv/h", "/srv/h/", "/home//alice", "/nonexistent"},
	"user.present.shell":  {"/bin/sh", "/bin/bash"}, "user.present.comment": {"", "An Alice", "Ä,,,"},
	"user.present.password": {actiontest.Hash, actiontest.OtherHash, "*"}, "user.present.expires": {"never", "2031-02-03"},
	"user.absent.name":   {"alice", "bob"},
	"group.present.name": {"wheel", "ops", "alice", "users"}, "group.present.gid": {10, 1500, 3000},
	"group.present.members": {list{}, list{"alice"}, list{"alice", "root"}, list{"root", "root"}},
	"group.absent.name":     {"wheel", "docker", "ops"},

	"ssh.authorized_key.key": {actiontest.Key1, actiontest.Key1 + " a@b", "no-pty " + actiontest.Key2 + " x  y"},
	"ssh.authorized_key.keys": {
		list{actiontest.Key1}, list{actiontest.Key2 + " x", actiontest.Key1}, list{}, list{actiontest.Key1, actiontest.Key1},
	},
	"ssh.authorized_key.options": {list{}, list{"no-pty", `from="10.0.0.0/8,::1"`}},
	"ssh.authorized_key.comment": {"one", "two words", " x "},
	"ssh.known_host.host":        {"git.example.org", "GIT.example.org", "192.0.2.1"}, "ssh.known_host.port": {22, 2222},
	"ssh.known_host.key": {actiontest.Key1, "ssh-rsa-nonsense"},

	"cron.present.name": {"backup", "b_1"}, "cron.absent.name": {"backup", "b_1", "none"},
	"cron.present.command":  {"/bin/true", `date +\%F  >/dev/null `, "a # b"},
	"cron.present.schedule": {"*/5 * * * *", "@daily", "  0   4 * * mon ", "@reboot"}, "cron.present.minute": {"0", "0,30", "*/7"},
	"cron.present.hour": {"8-18/2"}, "cron.present.dayOfMonth": {"1"}, "cron.present.month": {"jan-jun", "12"},
	"cron.present.dayOfWeek": {"sun", "0-7"}, "cron.present.env": {dict{"MAILTO": "a@b", "A": " it's "}, dict{"E": ""}},
	"cron.present.mode": {"0600", "644"},
	"host.present.ip":   {"10.0.0.5", "::1", "2001:DB8::1", "127.0.0.1"},
	"host.present.names": {
		list{"db"}, list{"db", "olddb"}, list{"Web", "web"}, list{"localhost"}, list{"new", "new"}, list{"DB"},
	},
	"host.absent.ip": {"10.0.0.5", "::1"}, "host.absent.names": {list{"db"}, list{"Web", "none"}, list{"localhost"}},
	"system.hostname.name": {"web1", "web1.example.org", "Web1"}, "system.timezone.name": {"UTC", "Europe/Berlin"},
	"sysctl.present.name":  {"net.ipv4.ip_forward", "net/ipv4/ip_forward", "kernel.panic", "net.ipv4.conf.eth0/100.forwarding"},
	"sysctl.present.value": {1, "0", " 7  8 ", list{4096, 131072}, true}, "sysctl.present.file": {"/etc/sysctl.d/50-site.conf", "/etc/sysctl.conf"},
	"kmod.present.name": {"br_netfilter", "br-netfilter", "loop"}, "kmod.absent.name": {"loop", "br-netfilter"},
	"kmod.present.options":  {list{}, list{"max_loop=8", "debug"}, "a=1"},
	"mount.mounted.name":    {"/srv/data", "/srv/data/", "/srv/a b", "/srv/new/m"},
	"mount.mounted.device":  {"/dev/sdb1", "UUID=ab-cd", "tmpfs", "LABEL=a b", "host:/x"},
	"mount.mounted.fstype":  {"xfs", "auto", "tmpfs", "ext4"},
	"mount.mounted.options": {"noatime", list{"ro", "noatime"}, list{}, "defaults", list{"nofail", "x-a=b c"}},
	"mount.mounted.dump":    {0, 1}, "mount.mounted.pass": {0, 2}, "mount.unmounted.name": {"/srv/data", "/srv/data/", "/srv/none"},

	"pkgrepo.managed.name": {"app", "other"}, "pkgrepo.managed.url": {"https://example.org/debian", list{"https://a.example/", "https://b.example/"}},
	"pkgrepo.managed.key": {armoredKey}, "pkgrepo.managed.keySource": {"key.asc", "key.gpg"},
	"pkgrepo.managed.suites": {"bookworm", list{"a", "b"}}, "pkgrepo.managed.components": {"main", list{"main", "extra"}},
	"pkgrepo.managed.architectures": {"amd64", list{"amd64", "arm64"}}, "pkgrepo.managed.types": {"deb", list{"deb", "deb-src"}},
	"pkgrepo.managed.replaces": {"vendor.list", list{"gone.list", "vendor.list"}}, "pkgrepo.absent.name": {"app", "none"},

	"service.ensure.name":  {"web", "www", "app@one", "front", "fixed"},
	"service.ensure.state": {"enabled", "disabled", "masked", "unmasked", list{"started", "enabled"}, "stopped"}, "service.ensure.settle": {"1s"},
	"service.publish.name": {"db", "web"}, "service.withdraw.name": {"db", "web"},
	"event.emit.name": {"backup/wanted"}, "event.emit.data": {dict{"a": list{1, "x"}}}, "event.emit.dedupe": {"d"},
	"event.emit.hosts": {list{"web1"}}, "template.expression.content": {"hello", "{{ server.name }}"},

	"test.succeed.name": {"x"}, "test.echo.name": {"x"}, "test.change.name": {"x"},
}

const armoredKey = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----\n"

// drawnHost is the host of TestSettle: it has something in the way of each action.
func drawnHost() []string {
	text := "# first\na = 1\nb = 2\nb\n\nlast\n"
	return actiontest.People(
		actiontest.Home, "f home/alice/.profile 4755 x", "f etc/skel/.profile 640 x", "l etc/skel/l .profile",
		"f srv/plain 644 "+text, "f srv/crlf 600 a = 1\r\nb = 2\r\n", "f srv/bom 644 \ufeffb = 1\nc\n", "f srv/cut 644 a\nb",
		"f srv/empty 644 ", "f srv/mode 4711 "+text, "f srv/o'd* 600 odd", "f srv/hard1 664 "+text, "l srv/link plain", "l srv/dangling nowhere",
		"f srv/block 644 # BEGIN pullet\nold\n# END pullet\n# BEGIN two words\n# END two words\n",
		"d srv/dir 2775", "f srv/dir/x.local 600 x", "f srv/dir/ro 444 x", "d srv/dir/sub 555", "f srv/dir/sub/ä\tb 4755 x", "l srv/dir/l ../plain",
		"f srv/dir/-rf 644 x", "d srv/full 1777", "d srv/full/app 700", "f srv/full/app/bin 644 in the way", "d srv/empty.d 755", "f srv/gone 644 x",
		"f srv/app.tar 644 "+actiontest.Tarball(actiontest.App...), "f gone 644 x",
		"d root 700", "d root/.ssh 755", "f root/.ssh/authorized_keys 644 # mine\n"+actiontest.Key2+" old\nno-pty "+actiontest.Key1+"\nnonsense",
		"f etc/ssh/ssh_known_hosts 644 git.example.org,192.0.2.1 "+actiontest.Key2+"\n",
		"d etc/cron.d 755", "f etc/cron.d/backup 600 old", "f etc/hostname 644 # ours\n\nold\n",
		"f etc/hosts 644 # ours\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # both\n10.0.0.5  db   olddb\t# the database\n10.0.0.6 Web",
		"f usr/share/zoneinfo/Europe/Berlin 644 TZif2", "f usr/share/zoneinfo/UTC 644 TZif2", "l etc/localtime /usr/share/zoneinfo/UTC", "f etc/timezone 644 Etc/UTC\n",
		"f etc/sysctl.d/50-site.conf 640 # site\nkernel.panic=5\n; end", "f etc/modules 644 loop\n# x\n", "d etc/modules-load.d 755",
		"f etc/fstab 640 "+fstabText, "d etc/apt 755", "f etc/apt/sources.list.d/vendor.list 644 deb https://example.org/debian ./\n",
		"f etc/apt/sources.list.d/app.sources 644 Types: deb\n", target, webUnit, webEnabled, appUnit, alsoUnit, staticUnit,
	)
}

// parameter is one that a step may set.
type parameter struct {
	name     string
	required bool
	values   list
}

// parametersOf returns the parameters of an action that are drawn, by the tags of its type. It removes those that are
// left out from unused.
func parametersOf(t *testing.T, action string, of reflect.Type, unused map[string]string) []parameter {
	t.Helper()
	var out []parameter
	for i := range of.NumField() {
		field := of.Field(i)
		tag, ok := field.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		switch {
		case rest == "inline":
			out = append(out, parametersOf(t, action, field.Type, unused)...)
		case leftOut[action+"."+name] != "":
			delete(unused, action+"."+name)
		default:
			p := parameter{name: name, required: rest == "required", values: drawn[action+"."+name]}
			words := field.Tag.Get("words")
			switch {
			case p.values != nil:
			case words != "":
				for _, word := range strings.Fields(words) {
					p.values = append(p.values, word)
				}
			case field.Type.Kind() == reflect.Bool, field.Type == reflect.TypeFor[*bool]():
				p.values = list{true, false}
			default:
				p.values = drawn[name]
			}
			if p.values == nil {
				t.Errorf("%s: no values for the parameter %s: add some to drawn", action, name)
			}
			out = append(out, p)
		}
	}
	return out
}

// draw returns parameters as a step has them.
func draw(r *rand.Rand, of []parameter) string {
	out := dict{}
	for _, p := range of {
		if (p.required || r.IntN(3) == 0) && len(p.values) > 0 {
			out[p.name] = p.values[r.IntN(len(p.values))]
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // the values are plain data
	}
	return string(text)
}

// TestSettle: whatever valid parameters an action has, a run does what the plan said, and after it nothing is to be
// done, also where nothing is on record.
func TestSettle(t *testing.T) {
	actiontest.NeedRoot(t)
	seed, draws := tier.Seed(t), 5
	if tier.Soaking() {
		draws *= 100
	}
	unused := maps.Clone(leftOut)
	for i, spec := range action.All() {
		if neverDrawn[spec.Name] != "" {
			continue
		}
		parameters := parametersOf(t, spec.Name, reflect.TypeOf(spec.New()).Elem(), unused)
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			done := 0
			for tries := 0; done < draws; tries++ {
				if tries > 100*draws {
					t.Fatalf("of %d draws only %d can run: %v", tries, done, parameters)
				}
				if settles(t, spec, draw(r, parameters)) {
					done++
				}
			}
		})
	}
	for name := range unused {
		t.Errorf("%s is left out, and no drawn action has it", name)
	}
}

// settles runs a step with drawn parameters, and reports whether it was worth it: they are valid, and the host allows
// them.
func settles(t *testing.T, spec apply.Spec, params string) bool {
	t.Helper()
	probe := &actiontest.Scene{T: t, Files: drawnFiles}
	if _, err := probe.Bind(spec.Name, params); err != nil {
		return false
	}
	ran := false
	good := t.Run("draw", func(t *testing.T) {
		s, act := drawnScene(t, spec)
		p := s.MustBind(spec.Name, params)
		before := s.All()
		planned := s.Plan(p)
		for _, d := range actiontest.Differences(before, s.All()) {
			t.Errorf("the plan wrote: %s", d)
		}
		before = s.Tree()
		r := s.Run(p)
		if ran = r.Outcome != apply.Failed; ran {
			if r.Outcome != planned.Outcome || r.Summary != planned.Summary || r.Diff != planned.Diff {
				t.Errorf("run: %s %q %q; the plan said %s %q %q", r.Outcome, r.Summary, r.Diff,
					planned.Outcome, planned.Summary, planned.Diff)
			}
			s.Stays(p)
			if u, ok := (*act).(apply.Unchecked); !spec.Passive && !(ok && u.Unchecked()) {
				s.State = t.TempDir()
				if r := s.Plan(p); r.Outcome != apply.OK {
					t.Errorf("a plan where nothing is on record: %s %q %q %s", r.Outcome, r.Summary, r.Diff, r.Reason)
				}
			}
		} else {
			unchangedFiles(s, before, r.Reason)
		}
		if t.Failed() {
			t.Logf("%s %s: %s %q %s", spec.Name, params, r.Outcome, r.Summary, r.Reason)
		}
	})
	return ran || !good
}

// unchangedFiles finds what a run changed that failed.
func unchangedFiles(s *actiontest.Scene, before map[string]string, reason string) {
	s.T.Helper()
	for _, d := range actiontest.OfFiles(actiontest.Differences(before, s.Tree())) {
		if !strings.Contains(d, "/.pwd.lock: ") { // the account tools leave it
			s.T.Errorf("failed (%s) and changed: %s", reason, d)
		}
	}
}

// drawnScene returns the host of TestSettle, and where to find the action that a step of it is bound to.
func drawnScene(t *testing.T, spec apply.Spec) (*actiontest.Scene, *apply.Action) {
	t.Helper()
	s := actiontest.New(t, drawnHost()...)
	s.Files = drawnFiles
	s.Link("srv/hard1", "srv/hard2")
	s.Fleet = &actiontest.Fleet{
		{Name: "db", Node: "db1", Address: "192.0.2.1", Port: 5432, Ready: true},
		{Name: "db", Node: "n1", Address: "192.0.2.9", Port: 5432, Ready: true},
	}
	if spec.Name == "git.checkout" {
		twoCommits(s)
	}
	return s, s.Watch(spec)
}

// drawnFiles are the files of the repository.
var drawnFiles = func() map[string]string {
	out := actiontest.Repository()
	maps.Copy(out, map[string]string{
		"script.sh": "#!/bin/sh\ntouch \"$PULLET_ROOT/srv/made\"; rm -f \"$PULLET_ROOT/srv/gone\"\n",
		"key.asc":   armoredKey, "key.gpg": "\x99\x01binary",
		"odd.tar": actiontest.Tarball(actiontest.Packed{"d", "d\xe4/", ""}, actiontest.Packed{"f", "d\xe4/\xfc x", "1"},
			actiontest.Packed{"x", "-rf", ""}),
	})
	return out
}()
