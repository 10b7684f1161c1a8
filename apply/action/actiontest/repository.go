package actiontest

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// repository is what a scene finds below files/ of its repository: archives of all formats, good and bad ones, and a
// tree.
var repository = sync.OnceValue(func() map[string]string {
	files := map[string]string{
		"tree/a.conf": "a = {{ server.name }}\n", "tree/sub/b.conf": "b\n", "tree/sub/deep/c": "c\n",
		"empty": "", "block": "x = {{ server.name }}\n", "text": "no archive\n",
		"hello.bz2": string(must(base64.StdEncoding.DecodeString(bzipped))),
	}
	maps.Copy(files, formats())
	for name, list := range oddArchives {
		files[name] = Tarball(list...)
	}
	return files
})

// Repository returns the files of a scene's repository.
func Repository() map[string]string { return maps.Clone(repository()) }

// formats are archives of App in each format, and others that are not tar.
func formats() map[string]string {
	plain := Tarball(App...)
	return map[string]string{
		"app.tar": plain, "app.tgz": Gzipped(plain), "short.tgz": Gzipped(plain)[:100],
		"app.xz":  compressed(plain, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }),
		"app.zst": compressed(plain, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }),
		"app.zip": zipped(App...), "device.zip": zipped(Packed{"c", "null", ""}),
	}
}

// oddArchives are archives of single entries, most of which no archive may have.
var oddArchives = map[string][]Packed{
	"up":           {{"f", "ok", "x"}, {"f", "a/../../up", "x"}},
	"absolute":     {{"f", "/etc/x", "x"}},
	"link out":     {{"l", "l", "../../etc"}},
	"link abs":     {{"l", "l", "/etc"}},
	"link trick":   {{"d", "a/b", ""}, {"l", "a/b/l", "../.."}, {"l", "m", "a/b/l/.."}},
	"through":      {{"d", "a", ""}, {"l", "l", "a"}, {"f", "l/x", "x"}},
	"hard":         {{"f", "a", "same"}, {"h", "b", "a"}},
	"hard out":     {{"h", "b", "../../etc/passwd"}},
	"hard nothing": {{"h", "b", "a"}},
	"device":       {{"c", "null", ""}},
	"twice":        {{"f", "a", "old"}, {"f", "a", "new"}},
	"kinds":        {{"f", "a", "x"}, {"d", "a/", ""}},
	"own name":     {{"f", ".pullet-archive-x", "x"}},
}

// SumOf is the digest of a text as steps write it.
func SumOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

// NoSum is a digest that nothing has.
const NoSum = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
