package action_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// mirror serves files for examples.
var mirror = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	text, ok := served[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	io.WriteString(w, text)
}))

var served = map[string]string{"tool": "#!/bin/sh\necho tool\n", "app.tar.gz": actiontest.Gzipped(actiontest.Tarball(actiontest.App...)), "text": "no archive\n"}

func init() {
	plain := actiontest.Tarball(actiontest.App...)
	remote := "source: " + mirror.URL + "/app.tar.gz, digest: '" + actiontest.SumOf(served["app.tar.gz"]) + "'"
	there := []string{"d opt 755", "d opt/app 755", "d opt/app/bin 755", "f opt/app/bin/run 755 #!/bin/sh\n", "d opt/app/etc 755", "f opt/app/etc/app.conf 644 port = 1\n", "l opt/app/etc/current ../bin/run"}
	with := func(list []string, more ...string) []string { return append(append([]string(nil), list...), more...) }
	examples["archive.extracted"] = []actiontest.Example{
		{Name: "no such owner", Params: "{name: /opt/app, source: app.tar, owner: app}", Host: noAccounts, Want: "extract: create 6", Fails: `there is no user "app" on this host`},
		{Name: "tar", Params: "{name: /opt, source: app.tar}", Want: "extract: create 6"},
		{Name: "tar.gz, without its first directory", Params: "{name: /opt/app, source: app.tgz, strip: 1}", Want: "extract: create 5"},
		{Name: "tar.xz", Params: "{name: /opt, source: app.xz}", Want: "extract: create 6"},
		{Name: "tar.zst", Params: "{name: /opt, source: app.zst}", Want: "extract: create 6"},
		{Name: "tar.bz2", Params: "{name: /opt, source: hello.bz2}", Want: "extract: create 1"},
		{Name: "zip", Params: "{name: /opt, source: app.zip}", Want: "extract: create 6"},
		{Name: "from the host", Params: "{name: /opt, source: /tmp/app.tar}", Host: []string{"f tmp/app.tar 644 " + plain}, Want: "extract: create 6"},
		{Name: "not on the host", Params: "{name: /opt, source: /tmp/app.tar}", Want: "extract", Fails: "there is no archive /tmp/app.tar on this host"},
		{Name: "from an address", Params: "{name: /opt, " + remote + "}", Want: "extract"},
		{Name: "not at the address", Params: "{name: /opt, source: " + mirror.URL + "/gone, digest: '" + actiontest.NoSum + "'}", Want: "extract", Fails: "/gone: the server says 404 Not Found"},
		{Name: "another digest", Params: "{name: /opt, source: " + mirror.URL + "/text, digest: '" + actiontest.NoSum + "'}", Want: "extract", Fails: "/text: it serves " + actiontest.SumOf("no archive\n") + ", and digest says " + actiontest.NoSum},
		{Name: "no archive at the address", Params: "{name: /opt, source: " + mirror.URL + "/text, digest: '" + actiontest.SumOf("no archive\n") + "'}", Want: "extract", Fails: "/text: this is no archive that is known"},
		{Name: "another digest on the host", Params: "{name: /opt, source: /tmp/app.tar, digest: '" + actiontest.NoSum + "'}", Host: []string{"f tmp/app.tar 644 x"}, Fails: "/tmp/app.tar has sha256:"},
		{Name: "there already, without a record", Params: "{name: /opt, source: app.tgz}", Host: there},
		{Name: "one file is another", Params: "{name: /opt, source: app.tgz}", Host: with(there[:3], with(there[4:], "f opt/app/bin/run 755 mine")...), Want: "extract: change 1"},
		{Name: "one file is missing", Params: "{name: /opt, source: app.tgz}", Host: there[:6], Want: "extract: create 1"},
		{Name: "modes", Params: "{name: /opt, source: app.tgz, mode: 0640, dirMode: 0755}", Host: there, Want: "extract: change 2"},
		{Name: "creates", Params: "{name: /opt, source: app.tgz, creates: /opt/app/bin}", Host: there[:3]},
		{Name: "names that are not in UTF-8", Params: "{name: /opt, source: latin}", Files: map[string]string{"latin": actiontest.Tarball(actiontest.Packed{"d", "d\xe9", ""}, actiontest.Packed{"f", "d\xe9/caf\xe9", "x"}, actiontest.Packed{"l", "l", "d\xe9/caf\xe9"})}, Want: "extract: create 3"},
		{Name: "directories that nobody writes", Params: "{name: /opt, source: closed, dirMode: 0555}", Files: map[string]string{"closed": actiontest.Tarball(actiontest.Packed{"d", "a", ""}, actiontest.Packed{"f", "a/b/f", "x"})}, Want: "extract: create 3"},
		{Name: "hard link", Params: "{name: /opt, source: hard}", Want: "extract: create 2"},
		{Name: "hard link where others write", Params: "{name: /opt, source: hard}", Host: []string{"d opt 1777"}, Want: "extract: create 2"},
		{Name: "hard link, given away", Params: "{name: /opt, source: hard, owner: '1500'}", Want: "extract: create 2", Root: true},
		{Name: "twice, the last counts", Params: "{name: /opt, source: twice}", Want: "extract: create 1"},
		{Name: "a link in its directory's place", Params: "{name: /opt, source: app.tgz}", Host: []string{"d other 755", "d opt 755", "l opt/app /other"}, Fails: "/opt/app is a symbolic link, and the archive has a directory there"},
		{Name: "a directory in a file's place", Params: "{name: /opt, source: hard}", Host: []string{"d opt/a 755"}, Fails: "/opt/a is a directory with files that are not of an earlier archive, and this one has a file there"},
		{Name: "a link in a file's place", Params: "{name: /opt, source: hard}", Host: []string{"f precious 644 mine", "d opt 755", "l opt/a /precious"}, Want: "extract: create 1, change 1"},
		{Name: "a file in the target's place", Params: "{name: /opt, source: hard}", Host: []string{"f opt 644"}, Fails: "/opt is not a directory"},
		{Name: "..", Params: "{name: /opt, source: up}", Fails: `up: "a/../../up" has .. in it`},
		{Name: "absolute", Params: "{name: /opt, source: absolute}", Fails: `absolute: "/etc/x" is an absolute name`},
		{Name: "a link out", Params: "{name: /opt, source: link out}", Fails: "link out: l is a symbolic link to ../../etc, which may lead out"},
		{Name: "an absolute link", Params: "{name: /opt, source: link abs}", Fails: "link abs: l is a symbolic link to /etc, out of the directory"},
		{Name: "a link out through another", Params: "{name: /opt, source: link trick}", Fails: "link trick: m is a symbolic link to a/b/l/.., which may lead out"},
		{Name: "through a link", Params: "{name: /opt, source: through}", Fails: "through: l/x lies below l, which is a symbolic link in the archive"},
		{Name: "a hard link out", Params: "{name: /opt, source: hard out}", Fails: `hard out: "../../etc/passwd" has .. in it`},
		{Name: "a hard link to nothing", Params: "{name: /opt, source: hard nothing}", Fails: "hard nothing: b is a hard link to a, which is no file"},
		{Name: "a device", Params: "{name: /opt, source: device}", Fails: `device: "null" is neither a file nor a directory nor a link`},
		{Name: "a device in a zip", Params: "{name: /opt, source: device.zip}", Fails: `device.zip: "null" is neither a file nor a directory nor a link`},
		{Name: "two kinds", Params: "{name: /opt, source: kinds}", Fails: "kinds: a is a directory in the archive, and something else too"},
		{Name: "our name", Params: "{name: /opt, source: own name}", Fails: "names that begin with .pullet-archive- are kept for pullet"},
		{Name: "no archive", Params: "{name: /opt, source: text}", Fails: "text: this is no archive that is known"},
		{Name: "cut off", Params: "{name: /opt, source: short.tgz}", Fails: "short.tgz: unexpected EOF"},
		{Name: "nothing left", Params: "{name: /opt, source: app.tgz, strip: 7}", Fails: "app.tgz: strip: 7 leaves nothing of it"},
	}
	mistakes = append(mistakes, []mistake{
		{"archive.extracted", "{name: opt, source: app.tgz}", `jobs/a.yaml:4:22: name: "opt" is not an absolute path`},
		{"archive.extracted", "{name: /, source: app.tgz}", "jobs/a.yaml:4:22: name: an archive is not extracted over the whole system"},
		{"archive.extracted", "{name: /opt}", `jobs/a.yaml:2:3: parameters: "source" is missing`},
		{"archive.extracted", "{name: /opt, source: gone}", "jobs/a.yaml:4:36: source: there is no files/gone"},
		{"archive.extracted", "{name: /opt, source: 'https://x.example.org/a.tgz'}", "jobs/a.yaml:4:36: source: an address needs a digest"},
		{"archive.extracted", "{name: /opt, source: 'ftp://x.example.org/a.tgz'}", "jobs/a.yaml:4:36: source: ftp: only https:// and http:// can be fetched"},
		{"archive.extracted", "{name: /opt, source: 'https://x.example.org/a.tgz', digest: abc}", `jobs/a.yaml:4:75: digest: "abc" is no digest`},
		{"archive.extracted", "{name: /opt, source: app.tgz, digest: '" + actiontest.NoSum + "'}", "jobs/a.yaml:4:53: digest: files/app.tgz has sha256:"},
		{"archive.extracted", "{name: /opt, source: app.tgz, strip: -1}", "jobs/a.yaml:4:52: strip: -1 is not between 0 and 100"},
		{"archive.extracted", "{name: /opt, source: app.tgz, fileMode: x}", `jobs/a.yaml:4:55: fileMode: "x" is not a mode`},
		{"archive.extracted", "{name: /opt, source: app.tgz, creates: x}", `jobs/a.yaml:4:54: creates: "x" is not an absolute path`},
	}...)
}
