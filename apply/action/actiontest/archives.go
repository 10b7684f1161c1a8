package actiontest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"time"
)

// Packed is one entry of an archive: its kind, its name, and its content or target. The kinds are d, a directory; f, a
// file; x, an executable; l, a symbolic link; h, a hard link; and c, a device.
type Packed [3]string

// must is for what cannot fail while archives are made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Tarball is a tar archive, not compressed.
func Tarball(list ...Packed) string {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range list {
		kind, name, text := p[0], p[1], p[2]
		h := &tar.Header{Name: name, Mode: 0o644, ModTime: time.Unix(1700000000, 0), Linkname: text}
		switch kind {
		case "d":
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case "l":
			h.Typeflag = tar.TypeSymlink
		case "h":
			h.Typeflag = tar.TypeLink
		case "c":
			h.Typeflag = tar.TypeChar
		default:
			h.Typeflag, h.Size, h.Linkname = tar.TypeReg, int64(len(text)), ""
			if kind == "x" {
				h.Mode = 0o4755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if h.Typeflag == tar.TypeReg {
			must(io.WriteString(w, text))
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

// Gzipped is a text, compressed.
func Gzipped(text string) string {
	return compressed(text, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func zipped(list ...Packed) string {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, p := range list {
		kind, name, text := p[0], p[1], p[2]
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(1700000000, 0)}
		h.SetMode(map[string]fs.FileMode{
			"f": 0o644, "x": 0o755, "d": fs.ModeDir | 0o755, "l": fs.ModeSymlink | 0o777,
			"c": fs.ModeDevice | fs.ModeCharDevice | 0o644,
		}[kind])
		must(io.WriteString(must(z.CreateHeader(h)), text))
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

// bzipped is a tar with the file hello: the standard library reads bzip2 and does not write it.
const bzipped = "QlpoOTFBWSZTWbbiQpUAAG77gMmQAARAAEWAAAhiRJ4ACAggAFQlIIyMTCPU9BFTUGmjIAH3NCEQneiJXquRbSk0Ek" +
	"GcFrhiQmsI+crRpxEgL6Yb4UFZm7REDYu5IpwoSFtxIUqA"

// App is what is in most archives: a directory, an executable, a file and a link.
var App = []Packed{
	{"d", "app/", ""}, {"x", "app/bin/run", "#!/bin/sh\n"}, {"f", "app/etc/app.conf", "port = 1\n"},
	{"l", "app/etc/current", "../bin/run"},
}
