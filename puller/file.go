package puller

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"
)

// info describes a node, under its own name or that of a link to it. Sys is its path without links.
type info struct {
	node *node
	name string
	at   string
	when time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.node.size }
func (i info) Mode() fs.FileMode  { return i.node.mode }
func (i info) ModTime() time.Time { return i.when }
func (i info) IsDir() bool        { return i.node.mode.IsDir() }
func (i info) Sys() any           { return i.at }

// openFile is a file that was opened.
type openFile struct {
	info fs.FileInfo
	load func() ([]byte, error)
	data *bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

func (f *openFile) Read(p []byte) (int, error) {
	if f.data == nil {
		data, err := f.load()
		if err != nil {
			return 0, err
		}
		f.data = bytes.NewReader(data)
	}
	return f.data.Read(p)
}

// openDir is a directory that was opened; left is what was not listed yet.
type openDir struct {
	info fs.FileInfo
	path string
	left []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.path, Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	list := d.left[:n:n]
	d.left = d.left[n:]
	return list, nil
}
