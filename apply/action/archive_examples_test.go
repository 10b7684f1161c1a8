package action_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// packed is one thing in an archive: "d NAME", "f NAME CONTENT", "x NAME CONTENT" (executable), "l NAME TARGET", "h
// NAME TARGET", or a device.
type packed struct{ kind, name, text string }

// must is for what cannot fail while examples are made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func tarball(list ...packed) string {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range list {
		h := &tar.Header{Name: p.name, Mode: 0o644, ModTime: time.Unix(1700000000, 0), Linkname: p.text}
		switch p.kind {
		case "d":
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case "l":
			h.Typeflag = tar.TypeSymlink
		case "h":
			h.Typeflag = tar.TypeLink
		case "c":
			h.Typeflag = tar.TypeChar
		default:
			h.Typeflag, h.Size, h.Linkname = tar.TypeReg, int64(len(p.text)), ""
			if p.kind == "x" {
				h.Mode = 0o4755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if h.Typeflag == tar.TypeReg {
			must(io.WriteString(w, p.text))
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

func compressed(text string, with func(io.Writer) (io.WriteCloser, error)) string {
	var out bytes.Buffer
	w := must(with(&out))
	must(io.WriteString(w, text))
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

func gzipped(text string) string {
	return compressed(text, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func zipped(list ...packed) string {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, p := range list {
		h := &zip.FileHeader{Name: p.name, Method: zip.Deflate, Modified: time.Unix(1700000000, 0)}
		h.SetMode(map[string]fs.FileMode{"f": 0o644, "x": 0o755, "d": fs.ModeDir | 0o755, "l": fs.ModeSymlink | 0o777, "c": fs.ModeDevice | fs.ModeCharDevice | 0o644}[p.kind])
		must(io.WriteString(must(z.CreateHeader(h)), p.text))
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

// bzipped is a tar with the file hello: the standard library reads bzip2 and does not write it.
const bzipped = "QlpoOTFBWSZTWbbiQpUAAG77gMmQAARAAEWAAAhiRJ4ACAggAFQlIIyMTCPU9BFTUGmjIAH3NCEQneiJXquRbSk0EkGcFrhiQmsI+crRpxEgL6Yb4UFZm7REDYu5IpwoSFtxIUqA"

var app = []packed{{"d", "app/", ""}, {"x", "app/bin/run", "#!/bin/sh\n"}, {"f", "app/etc/app.conf", "port = 1\n"}, {"l", "app/etc/current", "../bin/run"}}

// mirror serves files for examples.
var mirror = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	text, ok := served[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	must(io.WriteString(w, text))
}))

var served = map[string]string{"tool": "#!/bin/sh\necho tool\n", "app.tar.gz": gzipped(tarball(app...)), "text": "no archive\n"}

func sumOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

const noSum = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func init() {
	plain := tarball(app...)
	maps.Copy(repository, map[string]string{
		"app.tar": plain, "app.tgz": gzipped(plain), "app.zip": zipped(app...), "text": "no archive\n", "short.tgz": gzipped(plain)[:100],
		"app.xz":  compressed(plain, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }),
		"app.zst": compressed(plain, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }),
		"up":      tarball(packed{"f", "ok", "x"}, packed{"f", "a/../../up", "x"}), "absolute": tarball(packed{"f", "/etc/x", "x"}),
		"link out": tarball(packed{"l", "l", "../../etc"}), "link abs": tarball(packed{"l", "l", "/etc"}),
		"link trick": tarball(packed{"d", "a/b", ""}, packed{"l", "a/b/l", "../.."}, packed{"l", "m", "a/b/l/.."}),
		"through":    tarball(packed{"d", "a", ""}, packed{"l", "l", "a"}, packed{"f", "l/x", "x"}),
		"hard":       tarball(packed{"f", "a", "same"}, packed{"h", "b", "a"}), "hard out": tarball(packed{"h", "b", "../../etc/passwd"}),
		"hard nothing": tarball(packed{"h", "b", "a"}), "device": tarball(packed{"c", "null", ""}), "device.zip": zipped(packed{"c", "null", ""}),
		"twice": tarball(packed{"f", "a", "old"}, packed{"f", "a", "new"}), "kinds": tarball(packed{"f", "a", "x"}, packed{"d", "a/", ""}),
		"hello.bz2": string(must(base64.StdEncoding.DecodeString(bzipped))), "own name": tarball(packed{"f", ".pullet-archive-x", "x"}),
	})
	remote := "source: " + mirror.URL + "/app.tar.gz, digest: '" + sumOf(served["app.tar.gz"]) + "'"
	there := []string{"d opt 755", "d opt/app 755", "d opt/app/bin 755", "f opt/app/bin/run 755 #!/bin/sh\n", "d opt/app/etc 755", "f opt/app/etc/app.conf 644 port = 1\n", "l opt/app/etc/current ../bin/run"}
	with := func(list []string, more ...string) []string { return append(append([]string(nil), list...), more...) }
	examples["archive.extracted"] = []example{
		{name: "no such owner", params: "{name: /opt/app, source: app.tar, owner: app}", host: noAccounts, want: "extract: create 6", fails: `there is no user "app" on this host`},
		{name: "tar", params: "{name: /opt, source: app.tar}", want: "extract: create 6"},
		{name: "tar.gz, without its first directory", params: "{name: /opt/app, source: app.tgz, strip: 1}", want: "extract: create 5"},
		{name: "tar.xz", params: "{name: /opt, source: app.xz}", want: "extract: create 6"},
		{name: "tar.zst", params: "{name: /opt, source: app.zst}", want: "extract: create 6"},
		{name: "tar.bz2", params: "{name: /opt, source: hello.bz2}", want: "extract: create 1"},
		{name: "zip", params: "{name: /opt, source: app.zip}", want: "extract: create 6"},
		{name: "from the host", params: "{name: /opt, source: /tmp/app.tar}", host: []string{"f tmp/app.tar 644 " + plain}, want: "extract: create 6"},
		{name: "not on the host", params: "{name: /opt, source: /tmp/app.tar}", want: "extract", fails: "there is no archive /tmp/app.tar on this host"},
		{name: "from an address", params: "{name: /opt, " + remote + "}", want: "extract"},
		{name: "not at the address", params: "{name: /opt, source: " + mirror.URL + "/gone, digest: '" + noSum + "'}", want: "extract", fails: "/gone: the server says 404 Not Found"},
		{name: "another digest", params: "{name: /opt, source: " + mirror.URL + "/text, digest: '" + noSum + "'}", want: "extract", fails: "/text: it serves " + sumOf("no archive\n") + ", and digest says " + noSum},
		{name: "no archive at the address", params: "{name: /opt, source: " + mirror.URL + "/text, digest: '" + sumOf("no archive\n") + "'}", want: "extract", fails: "/text: this is no archive that is known"},
		{name: "another digest on the host", params: "{name: /opt, source: /tmp/app.tar, digest: '" + noSum + "'}", host: []string{"f tmp/app.tar 644 x"}, fails: "/tmp/app.tar has sha256:"},
		{name: "there already, without a record", params: "{name: /opt, source: app.tgz}", host: there},
		{name: "one file is another", params: "{name: /opt, source: app.tgz}", host: with(there[:3], with(there[4:], "f opt/app/bin/run 755 mine")...), want: "extract: change 1"},
		{name: "one file is missing", params: "{name: /opt, source: app.tgz}", host: there[:6], want: "extract: create 1"},
		{name: "modes", params: "{name: /opt, source: app.tgz, mode: 0640, dirMode: 0755}", host: there, want: "extract: change 2"},
		{name: "creates", params: "{name: /opt, source: app.tgz, creates: /opt/app/bin}", host: there[:3]},
		{name: "hard link", params: "{name: /opt, source: hard}", want: "extract: create 2"},
		{name: "twice, the last counts", params: "{name: /opt, source: twice}", want: "extract: create 1"},
		{name: "a link in its directory's place", params: "{name: /opt, source: app.tgz}", host: []string{"d other 755", "d opt 755", "l opt/app /other"}, fails: "/opt/app is a symbolic link, and the archive has a directory there"},
		{name: "a directory in a file's place", params: "{name: /opt, source: hard}", host: []string{"d opt/a 755"}, fails: "/opt/a is a directory, and the archive has a file there"},
		{name: "a link in a file's place", params: "{name: /opt, source: hard}", host: []string{"f precious 644 mine", "d opt 755", "l opt/a /precious"}, want: "extract: create 1, change 1"},
		{name: "a file in the target's place", params: "{name: /opt, source: hard}", host: []string{"f opt 644"}, fails: "/opt is not a directory"},
		{name: "..", params: "{name: /opt, source: up}", fails: `up: "a/../../up" has .. in it`},
		{name: "absolute", params: "{name: /opt, source: absolute}", fails: `absolute: "/etc/x" is an absolute name`},
		{name: "a link out", params: "{name: /opt, source: link out}", fails: "link out: l is a symbolic link to ../../etc, which may lead out"},
		{name: "an absolute link", params: "{name: /opt, source: link abs}", fails: "link abs: l is a symbolic link to /etc, out of the directory"},
		{name: "a link out through another", params: "{name: /opt, source: link trick}", fails: "link trick: m is a symbolic link to a/b/l/.., which may lead out"},
		{name: "through a link", params: "{name: /opt, source: through}", fails: "through: l/x lies below l, which is a symbolic link in the archive"},
		{name: "a hard link out", params: "{name: /opt, source: hard out}", fails: `hard out: "../../etc/passwd" has .. in it`},
		{name: "a hard link to nothing", params: "{name: /opt, source: hard nothing}", fails: "hard nothing: b is a hard link to a, which is no file"},
		{name: "a device", params: "{name: /opt, source: device}", fails: `device: "null" is neither a file nor a directory nor a link`},
		{name: "a device in a zip", params: "{name: /opt, source: device.zip}", fails: `device.zip: "null" is neither a file nor a directory nor a link`},
		{name: "two kinds", params: "{name: /opt, source: kinds}", fails: "kinds: a is a directory in the archive, and something else too"},
		{name: "our name", params: "{name: /opt, source: own name}", fails: "names that begin with .pullet-archive- are kept for pullet"},
		{name: "no archive", params: "{name: /opt, source: text}", fails: "text: this is no archive that is known"},
		{name: "cut off", params: "{name: /opt, source: short.tgz}", fails: "short.tgz: unexpected EOF"},
		{name: "nothing left", params: "{name: /opt, source: app.tgz, strip: 7}", fails: "app.tgz: strip: 7 leaves nothing of it"},
	}
	mistakes = append(mistakes, []mistake{
		{"archive.extracted", "{name: opt, source: app.tgz}", `jobs/a.yaml:4:22: name: "opt" is not an absolute path`},
		{"archive.extracted", "{name: /, source: app.tgz}", "jobs/a.yaml:4:22: name: an archive is not extracted over the whole system"},
		{"archive.extracted", "{name: /opt}", `jobs/a.yaml:2:3: parameters: "source" is missing`},
		{"archive.extracted", "{name: /opt, source: gone}", "jobs/a.yaml:4:36: source: there is no files/gone"},
		{"archive.extracted", "{name: /opt, source: 'https://x.example.org/a.tgz'}", "jobs/a.yaml:4:36: source: an address needs a digest"},
		{"archive.extracted", "{name: /opt, source: 'ftp://x.example.org/a.tgz'}", "jobs/a.yaml:4:36: source: ftp: only https:// and http:// can be fetched"},
		{"archive.extracted", "{name: /opt, source: 'https://x.example.org/a.tgz', digest: abc}", `jobs/a.yaml:4:75: digest: "abc" is no digest`},
		{"archive.extracted", "{name: /opt, source: app.tgz, digest: '" + noSum + "'}", "jobs/a.yaml:4:53: digest: files/app.tgz has sha256:"},
		{"archive.extracted", "{name: /opt, source: app.tgz, strip: -1}", "jobs/a.yaml:4:52: strip: -1 is not between 0 and 100"},
		{"archive.extracted", "{name: /opt, source: app.tgz, fileMode: x}", `jobs/a.yaml:4:55: fileMode: "x" is not a mode`},
		{"archive.extracted", "{name: /opt, source: app.tgz, creates: x}", `jobs/a.yaml:4:54: creates: "x" is not an absolute path`},
	}...)
}
