package pkg

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/tier"
)

// versions are pairs to compare, for both families: the programs themselves say what is right.
var versions = []string{
	"1.0", "1.1", "1.10", "1.2", "01.2", "1.0-1", "1.0-2", "1.0-10", "1:0.1", "0:1.0", "2:1.0-1", "1.0~rc1", "1.0~rc1-1", "1.0~~", "1.0~", "1.0a", "1.0b", "1.0.a",
	"1.0+b1", "1.0+deb12u1", "1.0-1+b8", "1.0-1~bpo12", "1.0^git1", "1.0^", "1.0^git1~x", "5.2.15-2+b13", "5.2.15-2+b8", "20240101", "1.0.0", "1", "a", "1.0-1.el9", "1.0-1.fc41", "1_0",
}

// TestCompareDebian holds the comparison against dpkg's.
func TestCompareDebian(t *testing.T) {
	var script strings.Builder
	type pair struct{ a, b string }
	var pairs []pair
	for _, a := range versions {
		for _, b := range versions {
			if strings.ContainsAny(a+b, "^_") || a == "a" || b == "a" { // dpkg has no such versions
				continue
			}
			pairs = append(pairs, pair{a, b})
			fmt.Fprintf(&script, "if dpkg --compare-versions '%[1]s' lt '%[2]s'; then echo -1; elif dpkg --compare-versions '%[1]s' gt '%[2]s'; then echo 1; else echo 0; fi\n", a, b)
		}
	}
	checkOrder(t, exec.Command("/bin/sh", "-c", script.String()), len(pairs), func(i int) (string, int) {
		return pairs[i].a + " " + pairs[i].b, compareDebian(pairs[i].a, pairs[i].b)
	})
}

// TestCompareRPM holds the comparison of one part of a version against rpm's.
func TestCompareRPM(t *testing.T) {
	tier.Program(t, "rpm", "rpm") // it says what is right
	args := []string{}
	type pair struct{ a, b string }
	var pairs []pair
	for _, a := range versions {
		for _, b := range versions {
			if strings.ContainsAny(a+b, ":-") {
				continue
			}
			pairs = append(pairs, pair{a, b})
			args = append(args, "--eval", fmt.Sprintf("%%{lua:print(rpm.vercmp(%q, %q))}", a, b))
		}
	}
	checkOrder(t, exec.Command("rpm", args...), len(pairs), func(i int) (string, int) {
		return pairs[i].a + " " + pairs[i].b, compareRPM(pairs[i].a, pairs[i].b)
	})
}

func checkOrder(t *testing.T, oracle *exec.Cmd, n int, ours func(int) (string, int)) {
	t.Helper()
	out, err := oracle.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Fields(string(out))
	if len(answers) != n {
		t.Fatalf("%d answers to %d questions", len(answers), n)
	}
	for i, want := range answers {
		if name, got := ours(i); fmt.Sprint(got) != want {
			t.Errorf("%s: %d, want %s", name, got, want)
		}
	}
}

// FuzzVersions: both orders are orders, whatever the texts are.
func FuzzVersions(f *testing.F) {
	for i, v := range versions[1:] {
		f.Add(v, versions[i], "1.0")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for name, compare := range map[string]func(a, b string) int{"debian": compareDebian, "rpm": compareRPM} {
			if compare(a, a) != 0 || compare(a, b) != -compare(b, a) {
				t.Errorf("%s: %q %q: %d and %d", name, a, b, compare(a, b), compare(b, a))
			}
			if name == "debian" && compare(a, b) <= 0 && compare(b, c) <= 0 && compare(a, c) > 0 {
				t.Errorf("%s: %q <= %q <= %q, and not the first before the last", name, a, b, c)
			}
		}
	})
}

const dpkgStatus = `Package: dpkg
Status: install ok installed
Architecture: amd64
Version: 1.21

Package: exim4
Status: hold ok installed
Architecture: amd64
Version: 4.96-15
Provides: mail-transport-agent, default-mta (= 1)
Description: a mailer
 Version: 9 is not a field here

Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36

Package: libc6
Status: install ok unpacked
Architecture: i386
Version: 2.35

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1

Package: cut
Status: install reinstreq half-installed
Architecture: all
Version: 1

Package: waits
Status: install ok triggers-awaited
Architecture: all
Version: 1
`

// TestReadDpkg: the status file, the journal over it, and who was installed for another.
func TestReadDpkg(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"var/lib/dpkg/status":          dpkgStatus,
		"var/lib/dpkg/updates/0001":    "Package: exim4\nStatus: install ok half-configured\nArchitecture: amd64\nVersion: 4.97\n",
		"var/lib/dpkg/updates/0002":    "Package: new\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n",
		"var/lib/dpkg/updates/tmp.i":   "Package: half\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n",
		"var/lib/apt/extended_states":  "Package: libc6\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: new\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: waits\nArchitecture: all\nAuto-Installed: 0\n",
		"var/lib/dpkg/info/irrelevant": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := readDpkg(&apply.Host{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]pkgState{
		"exim4":       {name: "exim4", arch: "amd64", version: "4.97", installed: true, broken: "half-configured"},
		"libc6":       {name: "libc6", arch: "amd64", version: "2.36", installed: true, auto: true},
		"libc6:i386":  {name: "libc6", arch: "i386", version: "2.35", installed: true, broken: "unpacked"},
		"libc6:amd64": {name: "libc6", arch: "amd64", version: "2.36", installed: true, auto: true},
		"gone":        {name: "gone", arch: "all", version: "1", config: true},
		"cut":         {name: "cut", arch: "all", version: "1", installed: true, broken: "half-installed, must be installed again"},
		"waits":       {name: "waits", arch: "all", version: "1", installed: true},
		"new":         {name: "new", arch: "all", version: "1", installed: true, auto: true},
		"waits:amd64": {name: "waits", arch: "all", version: "1", installed: true},
		"waits:all":   {name: "waits", arch: "all", version: "1", installed: true},
		"waits:i386":  {},
		"half":        {},
		"libc6:arm64": {},
	} {
		if got := set.find(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if len(set.unfinished()) != 3 {
		t.Errorf("unfinished: %+v, want exim4, libc6:i386 and cut", set.unfinished())
	}
}

// TestProvided: a name that an installed package stands for.
func TestProvided(t *testing.T) {
	set := pkgSet{all: map[string][]pkgState{}}
	set.addDpkg([]byte(dpkgStatus))
	for name, want := range map[string]string{"mail-transport-agent": "exim4", "default-mta": "exim4", "nothing": ""} {
		if got, ok := set.providing(name, anyVersion); got.name != want || ok != (want != "") {
			t.Errorf("%s: %q %t, want %q", name, got.name, ok, want)
		}
	}
}

func FuzzDpkgStatus(f *testing.F) {
	f.Add([]byte(dpkgStatus))
	f.Add([]byte("Package:\nStatus: a b\n\n\n:x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set := pkgSet{all: map[string][]pkgState{}}
		set.addDpkg(text)
		for name, list := range set.all {
			if name == "" || len(list) == 0 || set.find(list[0].name+":"+list[0].arch).name == "" && list[0].arch != "" && !strings.Contains(name+list[0].arch, ":") {
				t.Errorf("%q: %+v", name, list)
			}
		}
	})
}

func BenchmarkReadDpkg(b *testing.B) {
	h := &apply.Host{Root: "/"}
	for b.Loop() {
		if _, err := readDpkg(h); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAptNews(t *testing.T) {
	const text = `Reading package lists...
The following packages will be upgraded:
  bash tar
Inst bash [5.2.15-2+b8] (5.2.15-2+b13 Debian:12.15/oldstable [amd64]) [libx:amd64 ]
Inst libnew (1.0 Debian:12/stable [amd64])
Remv old [2.0]
Inst odd [1] (2)
Conf bash (5.2.15-2+b13 Debian:12.15/oldstable [amd64])
Inst
`
	want := []packageChange{{"bash", "5.2.15-2+b8", "5.2.15-2+b13"}, {"libnew", "", "1.0"}, {"old", "2.0", ""}, {"odd", "1", "2"}}
	if got := aptNews(text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAptCandidates(t *testing.T) {
	const text = "bash:\n  Installed: 5.1\n  Candidate: 5.2\n  Version table:\n     5.2 500\n        500 http://x Packages\nlibc6:i386:\n  Installed: (none)\n  Candidate: 2.36\n  Version table:\nmta:\n  Installed: (none)\n  Candidate: (none)\n"
	want := map[string]string{"bash": "5.2", "libc6:i386": "2.36"}
	if got := aptCandidates(text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzPackageOutput(f *testing.F) {
	f.Add("Inst bash [1] (2 x)\nRemv\nbash:\n  Candidate: 5\na\tb\tc\nno package provides x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range append(aptNews(text), dnfNews(text)...) {
			if strings.ContainsAny(n.name, "\n") {
				t.Errorf("%q", n)
			}
		}
		aptCandidates(text)
		aptSays(apply.Output{StdOut: text, StdErr: text, ExitCode: 1})
		for _, list := range rpmSet(text).all {
			if len(list) == 0 {
				t.Error("a name without packages")
			}
		}
	})
}

// TestAptSays: the cause is told, and what goes with it is not.
func TestAptSays(t *testing.T) {
	for name, c := range map[string]struct{ stdout, stderr, want string }{
		"a script fails": {
			"Setting up pullet-broken (1.0) ...\n",
			"pullet-broken: no luck today\ndpkg: error processing package pullet-broken (--configure):\n installed pullet-broken package post-installation script subprocess returned error exit status 1\nErrors were encountered while processing:\n pullet-broken\n other\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n",
			"pullet-broken: no luck today | error processing package pullet-broken (--configure): | installed pullet-broken package post-installation script subprocess returned error exit status 1",
		},
		"unmet": {
			"Some packages could not be installed.\nThe following packages have unmet dependencies:\n web : Depends: hello (>= 9) but it is not installable\n       Depends: more\nThen:\n",
			"E: Unable to correct problems, you have held broken packages.\n",
			"web : Depends: hello (>= 9) but it is not installable | Depends: more | Unable to correct problems, you have held broken packages.",
		},
		"lock":   {"", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)\nN: Be aware that removing the lock file is not a solution and may break your system.\nE: Unable to acquire the dpkg frontend lock\n", "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get) | Unable to acquire the dpkg frontend lock"},
		"a list": {"", "W: Failed to fetch http://x/InRelease  Connection refused\nW: Some index files failed to download.\n", "Failed to fetch http://x/InRelease  Connection refused"},
		"silent": {"last words\n", "W: a warning\n", "exit code 100: W: a warning"},
	} {
		if got := aptSays(apply.Output{ExitCode: 100, StdOut: c.stdout, StdErr: c.stderr}); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestRPM(t *testing.T) {
	set := rpmSet("kernel\t0:6.1-1\tx86_64\tkernel \nkernel\t0:6.10-1\tx86_64\tkernel=6.10-1 \nvim\t2:9.0-3\tnoarch\tvim=2:9.0-3 vi= pc(vi)=0:9 \nno package provides x\n")
	for name, want := range map[string]string{"kernel": "6.10-1", "vim": "2:9.0-3", "x": "", "vim:noarch": "2:9.0-3", "vim:i686": ""} {
		if got := set.find(name).version; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"vi": "", "pc(vi)": "9", "vim": "2:9.0-3"} {
		if _, ok := set.providing(name, func(version string) bool { return version == want }); !ok {
			t.Errorf("nothing provides %s in version %q", name, want)
		}
	}
	for have, wants := range map[string]map[string]bool{
		"1.1-2":   {"1.1": true, "1.1-2": true, "0:1.1": true, "1.1-1": false, "1": false, "1:1.1": false},
		"2:9.0-3": {"9.0": true, "9.0-3": true, "2:9.0": true, "2:9.0-3": true, "1:9.0": false, "9": false},
	} {
		for want, same := range wants {
			if sameRPM(have, want) != same {
				t.Errorf("%s as %s: %t, want %t", have, want, !same, same)
			}
		}
	}
	for spec, w := range map[string]pkgWant{"a": {"a", ""}, "a-1.0": {"a", "1.0"}, "a-1*.i686": {"a:i686", "1*"}} {
		if got := rpmSpec(w); got != spec {
			t.Errorf("%+v: %s, want %s", w, got, spec)
		}
	}
}

// TestPlan: what is to be done, from what is there.
func TestPlan(t *testing.T) {
	yes, no := true, false
	rules := apt{}.rules()
	set := pkgSet{native: "amd64", all: map[string][]pkgState{}}
	set.addDpkg([]byte(dpkgStatus))
	for _, c := range []struct {
		want      pkgWant
		hold      *bool
		downgrade bool
		says      string
	}{
		{want: pkgWant{"mail-transport-agent", ""}},
		{want: pkgWant{"mail-transport-agent", "1"}, says: "install mail-transport-agent 1"},
		{want: pkgWant{"mail-transport-agent", ""}, hold: &no},
		{want: pkgWant{"mail-transport-agent", ""}, hold: &yes, says: "install mail-transport-agent, hold mail-transport-agent"},
		{want: pkgWant{"default-mta", "1"}},
		{want: pkgWant{"default-mta", "1*"}},
		{want: pkgWant{"default-mta", "2"}, says: "install default-mta 2"},
		{want: pkgWant{"exim4", "4.96*"}},
		{want: pkgWant{"exim4", "4.97"}, says: "error: exim4 is held at 4.96-15: add hold: true to the step, which then may change it, or hold: false"},
		{want: pkgWant{"exim4", "4.97"}, hold: &yes, says: "exim4 4.96-15 -> 4.97"},
		{want: pkgWant{"exim4", "4.97"}, hold: &no, says: "exim4 4.96-15 -> 4.97, unhold exim4"},
		{want: pkgWant{"dpkg", "1.20*"}, says: "error: dpkg is 1.21, and 1.20* is lower: add allowDowngrade: true if that is meant"},
		{want: pkgWant{"dpkg", "1.20*"}, downgrade: true, says: "dpkg 1.21 -> 1.20*"},
		{want: pkgWant{"dpkg", "1.2*"}},
		{want: pkgWant{"dpkg", "1.3.*"}, says: "error: dpkg is 1.21, and 1.3.* is lower: add allowDowngrade: true if that is meant"},
		{want: pkgWant{"libc6:i386", ""}, says: "finish installing libc6:i386 (unpacked)"},
		{want: pkgWant{"gone", ""}, says: "install gone"},
		{want: pkgWant{"comes", ""}, says: "install comes 2.0"},
		{want: pkgWant{"comes", "1.*"}, says: "install comes 1.*"},
		{want: pkgWant{"waits", ""}},
	} {
		plan, err := pkgPlanner{rules, set, c.downgrade, c.hold, map[string]string{"comes": "2.0"}}.plan([]pkgWant{c.want})
		got := plan.change().Summary
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.says {
			t.Errorf("%+v: %q, want %q", c.want, got, c.says)
		}
	}
}

// TestPlanOutside: only what the repositories got is outside of the host; a package that somebody removed is not.
func TestPlanOutside(t *testing.T) {
	for _, c := range []struct {
		plan pkgPlan
		want bool
	}{
		{pkgPlan{}, false},
		{pkgPlan{says: []string{"a 1 -> 2"}, newer: 1}, true},
		{pkgPlan{says: []string{refreshLists}, newer: 1}, true},
		{pkgPlan{says: []string{"install a"}}, false},
		{pkgPlan{says: []string{"install a", "b 1 -> 2"}, newer: 1}, false},
		{pkgPlan{says: []string{"install a", refreshLists}, newer: 1}, false},
	} {
		if got := c.plan.change().Outside; got != c.want {
			t.Errorf("%q: outside %v, want %v", c.plan.says, got, c.want)
		}
	}
	for c, want := range map[packageChange]string{
		{"a", "1", "2"}: "a 1 -> 2", {"a", "", "2"}: "a 2", {"a", "1", ""}: "a (removed)",
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
