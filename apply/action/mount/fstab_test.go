package mount

import (
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestSetFstab: one line changes or is added, and every other byte stays.
func TestSetFstab(t *testing.T) {
	const around = "# comment\n\n  /dev/sda1 / ext4 errors=remount-ro 0 1\n%s#/dev/old /srv/data\tswap none\n/dev/sdz none swap sw 0 0\n"
	want := fstabEntry{"/dev/sdb1", "/srv/data", "xfs", "noatime", 0, 2}
	for before, after := range map[string]string{
		"/dev/sdb1 /srv/data xfs noatime 0 2\n":          "/dev/sdb1 /srv/data xfs noatime 0 2\n",
		"/dev/sdb1 /srv/data/ xfs noatime 0 2\n":         "/dev/sdb1 /srv/data/ xfs noatime 0 2\n",
		"\t/dev/sdb1  /srv/data  xfs  noatime 0 2 # x\n": "\t/dev/sdb1  /srv/data  xfs  noatime 0 2 # x\n",
		"/dev/sdb1   /srv/data xfs  ro\t0 1  # mine\n":   "/dev/sdb1   /srv/data xfs  noatime\t0 2  # mine\n",
		"/dev/sdc1 /srv/data ext4\n":                     "/dev/sdb1 /srv/data xfs\tnoatime\t0\t2\n",
		"/dev/sdc1 /srv/data ext4 ro # mine\n":           "/dev/sdb1 /srv/data xfs noatime\t0\t2 # mine\n",
		"/dev/sdb1 /srv/data xfs noatime 0 two\n":        "/dev/sdb1 /srv/data xfs noatime 0 2\n",
	} {
		text := strings.Replace(around, "%s", before, 1)
		got, _, err := setFstab(text, want)
		if expected := strings.Replace(around, "%s", after, 1); err != nil || got != expected {
			t.Errorf("%q: %v\n got %q\nwant %q", before, err, got, expected)
		}
	}
	text := strings.Replace(around, "%s", "", 1)
	if got, _, err := setFstab(text, want); err != nil || got != text+"/dev/sdb1\t/srv/data\txfs\tnoatime\t0\t2\n" {
		t.Errorf("added: %v %q", err, got)
	}
}

// FuzzFstab: whatever a table holds, an entry that was set is read back as it is, setting it again changes nothing, the
// lines of other mount points stay, and nothing is left when the entry goes.
func FuzzFstab(f *testing.F) {
	for _, seed := range []string{"", "#", "a /m b", "a /m b c 1 2 # d\n", "x /y z\n\n\ta\t/m\tb", "a /m\\040 b\\", "a /m b #c", "#a /m b", "\\043 /m b\r\n", "a /m/ \xa0 b c d e f"} {
		f.Add(seed, "/dev/sda1", "/m", "ro,x y")
	}
	f.Add("", "#a\\b\t", "/a b\n\\040", "\r")
	f.Fuzz(func(t *testing.T, text, device, dir, options string) {
		if device == "" || options == "" || !strings.HasPrefix(dir, "/") {
			return // refused when the parameters are read
		}
		want := fstabEntry{device, cleanDir(dir), "auto", options, 0, 2}
		got, _, err := setFstab(text, want)
		if err != nil {
			if !strings.Contains(err.Error(), "two entries") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		have, at, err := findFstab(strings.Split(got, "\n"), want.dir)
		if err != nil || have != want {
			t.Errorf("%q: set %+v, read %+v in line %d: %v", text, want, have, at, err)
		}
		if again, _, err := setFstab(got, want); err != nil || again != got {
			t.Errorf("%q: again %q: %v", got, again, err)
		}
		rest := withoutFstab(text, want.dir)
		if others := withoutFstab(got, want.dir); others != rest && others != rest+"\n" {
			t.Errorf("%q: others %q", rest, others)
		}
	})
}

// FuzzEscapes: what is written for a table is one field, and is read back.
func FuzzEscapes(f *testing.F) {
	for _, seed := range []string{"", "a b", `\040`, `\`, "\\\t\n", "#x", `a\1`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		field := escaped(text)
		if back := unescaped(field); back != text || strings.ContainsAny(field, " \t\n") {
			t.Errorf("%q became %q and then %q", text, field, back)
		}
	})
}

// TestOnTop: of mounts at one directory the last of the chain counts, in whatever order the kernel lists them.
func TestOnTop(t *testing.T) {
	for table, want := range map[string]string{
		"":                           "",
		"50 25 0:39 / /mnt rw - t a": "a",
		"51 50 0:40 / /mnt rw - t upper|50 25 0:39 / /mnt rw - t lower": "upper",
		"50 25 0:39 / /mnt rw - t lower|51 50 0:40 / /mnt rw - t upper": "upper",
		"1 1 0:1 / / rw - t itself":                                     "itself",
	} {
		text := strings.ReplaceAll(table, "|", " rw\n")
		if table != "" {
			text += " rw\n"
		}
		mounts, err := mountinfo.GetMountsFromReader(strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if top := onTop(mounts); top != nil {
			got = top.Source
		}
		if got != want {
			t.Errorf("%s: %q is on top, want %q", table, got, want)
		}
	}
}

// TestMountOptions: what is to be compared with the kernel, and what a remount says.
func TestMountOptions(t *testing.T) {
	m := &mountinfo.Info{Options: "rw,nosuid,relatime", VFSOptions: "rw", FSType: "ext4"}
	for text, want := range map[string][2]string{
		"":                            {"suid", "dev,suid,exec,rw,diratime,relatime"},
		"nosuid":                      {"", "diratime,dev,exec,nosuid,rw,relatime"},
		"ro,noatime,nosuid":           {"ro,noatime", ""},
		"nosuid,strictatime":          {"strictatime", ""},
		"nosuid,atime":                {"", ""},
		"noatime,relatime,nosuid":     {"", ""},
		"user":                        {"nodev,noexec", ""},
		"user,exec":                   {"nodev", ""},
		"owner":                       {"nodev", ""},
		"bind":                        {"", ""},
		"bind,ro":                     {"ro", ""},
		"rbind,suid":                  {"suid", ""},
		"nosuid,nofail,x-a.b,comment": {"", ""},
	} {
		a := &Mounted{Device: "/nonesuch", options: splitOptions(text)}
		differs, unseen, err := a.differs(m, "/")
		slices.Sort(differs)
		expected := strings.FieldsFunc(want[0], func(r rune) bool { return r == ',' })
		slices.Sort(expected)
		if err != nil || !slices.Equal(differs, expected) || len(unseen) > 0 {
			t.Errorf("%q: differs %q, unseen %q (%v), want %q", text, differs, unseen, err, expected)
		}
		if want[1] != "" {
			words := strings.Split(want[1], ",")
			got, err := a.remountOptions(m)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			slices.Sort(words)
			if !slices.Equal(got, words) {
				t.Errorf("%q: remount with %q, want %q", text, got, words)
			}
		}
	}
	own := (&Mounted{options: splitOptions(`defaults,discard,data=ordered,noatime,context="a:b,c",x-y=z`)}).ownOptions()
	if !slices.Equal(own, []string{"discard", "data=ordered", `context="a:b,c"`}) {
		t.Errorf("own options %q", own)
	}
	for _, quiet := range []*mountinfo.Info{
		{FSType: "fuse.sshfs", Options: "rw,nosuid,nodev,relatime"}, {FSType: "squashfs", Options: "ro,relatime", VFSOptions: "ro"},
	} {
		if got, _, err := (&Mounted{options: splitOptions("")}).differs(quiet, "/"); err != nil || len(got) > 0 {
			t.Errorf("%s: %q %v", quiet.FSType, got, err)
		}
	}
}

// TestSizes reads what a tmpfs is given.
func TestSizes(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "4096": 4096, "8k": 8 << 10, "1G": 1 << 30, "2t": 2 << 40} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%s: %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "k", "50%", "-1", "1kk", "x", "99999999999g"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}
