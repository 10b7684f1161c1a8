package gitremote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

var wanted = plumbing.NewHash("0123456789012345678901234567890123456789")

// evil is a git server over http that answers as a test wants.
type evil struct {
	refs, pack func(w io.Writer)
	user       atomic.Value // that was last sent
}

func (e *evil) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := r.BasicAuth()
	e.user.Store(name)
	if strings.HasSuffix(r.URL.Path, "/info/refs") {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, "001e# service=git-upload-pack\n0000")
		out := bufio.NewWriterSize(w, 64<<10) // a listing has half a million lines
		e.refs(out)
		out.Flush()
		return
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	e.pack(w)
}

func oneRef(w io.Writer) {
	line(w, wanted.String()+" refs/heads/main\x00side-band-64k symref=HEAD:refs/heads/main\n")
	fmt.Fprint(w, "0000")
}

func line(w io.Writer, text string) { fmt.Fprintf(w, "%04x%s", len(text)+4, text) }

// bare is an answer with a pack that is in no sideband.
func bare(pack []byte) func(io.Writer) {
	return func(w io.Writer) {
		line(w, "NAK\n")
		_, _ = w.Write(pack) // the client may have enough
	}
}

func client(t *testing.T, l Limits) Client { return Client{Scratch: t.TempDir(), Limits: l} }

func fetchFrom(t *testing.T, c Client, url string) error {
	t.Helper()
	_, err := c.Fetch(t.Context(), Remote{URL: url + "/x.git"}, Request{Wants: []plumbing.Hash{wanted}, Place: func(string, string) error { return nil }})
	return err
}

// TestHostileListings: what a server says it has is bounded in every direction.
func TestHostileListings(t *testing.T) {
	for name, c := range map[string]struct {
		refs func(io.Writer)
		want string
	}{
		"endless": {func(w io.Writer) {
			for i := 0; ; i++ {
				text := fmt.Sprintf("%04x%040x refs/heads/%0990d\n", 4+40+1+11+990+1, i+1, i)
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		}, "its list of references: more than the limit of 32 MiB"},
		"very many": {func(w io.Writer) {
			for i := range maxRefs + 10 {
				line(w, fmt.Sprintf("%040x refs/%d\n", i+1, i))
			}
		}, "its list of references: more than the limit of 500000"},
		"cut short":       {func(w io.Writer) { line(w, wanted.String()+" refs/heads/main\x00x\n") }, "the server breaks git's protocol: its list of references is cut short"},
		"nothing":         {func(io.Writer) {}, "the server breaks git's protocol: it ends before its list of references"},
		"empty":           {func(w io.Writer) { fmt.Fprint(w, "0000") }, "remote repository is empty: push a commit first"},
		"no length":       {func(w io.Writer) { fmt.Fprint(w, "zzzzzzzz") }, "the server breaks git's protocol: a line that does not begin with its length"},
		"no reference":    {func(w io.Writer) { line(w, "\x1b[2Jhello\n") }, `the server breaks git's protocol: "[2Jhello" is not a reference`},
		"other ids":       {func(w io.Writer) { line(w, strings.Repeat("a", 64)+" refs/heads/main\n") }, "its object ids are SHA-256; pullet reads SHA-1 repositories"},
		"refuses":         {func(w io.Writer) { line(w, "ERR go \x1b[31maway\n") }, "the server says: go [31maway"},
		"refuses at last": {func(w io.Writer) { line(w, wanted.String()+" refs/heads/main\n"); line(w, "ERR now") }, "the server says: now"},
	} {
		t.Run(name, func(t *testing.T) {
			if raced && slices.Contains([]string{"endless", "very many"}, name) {
				t.Skip("a long list takes the race detector longer than a server has")
			}
			srv := httptest.NewServer(&evil{refs: c.refs})
			defer srv.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client(t, small).List(t.Context(), Remote{URL: srv.URL + "/x.git"})
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != c.want && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 256<<20 {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

// TestNamesThatNobodyHas: references that git would not accept are left out.
func TestNamesThatNobodyHas(t *testing.T) {
	srv := httptest.NewServer(&evil{refs: func(w io.Writer) {
		for i, name := range []string{"refs/heads/main", "refs/heads/../../x", "refs/heads/\x1b[2J", "refs/heads/a\x7f", "refs/tags/x.lock", "/etc/passwd", "refs/heads/.x", "refs/heads/a b", "refs/heads/-x"} {
			line(w, fmt.Sprintf("%040x %s\n", i+1, name))
		}
		fmt.Fprint(w, "0000")
	}})
	defer srv.Close()
	l, err := client(t, small).List(t.Context(), Remote{URL: srv.URL})
	if err != nil || len(l.Refs) != 1 || l.Refs[0].Name != "refs/heads/main" {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestHostileAnswers: what comes in place of a pack ends the fetch, leaves
// nothing, and the next fetch works.
func TestHostileAnswers(t *testing.T) {
	good := newPack(1)
	good.object(plumbing.BlobObject, []byte("good"))
	whole := good.end()
	endless := func(w io.Writer, band byte) {
		line(w, "NAK\n")
		line(w, "\x01PACK\x00\x00\x00\x02\x00\x00\x00\x01")
		chunk := string(band) + strings.Repeat("x", 60_000)
		for {
			if _, err := fmt.Fprintf(w, "%04x%s", len(chunk)+4, chunk); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		pack func(io.Writer)
		want string
	}{
		"32 bytes that announce all there can be": {bare(newPack(4294967295).end()), "a pack of 4294967295 objects: more than the limit of 100000"},
		"endless pack":     {func(w io.Writer) { endless(w, 1) }, "the pack: more than the limit of 32 MiB; if the repository really needs it, raise agent.git.disk"},
		"endless progress": {func(w io.Writer) { endless(w, 2) }, "the pack: more than the limit of 32 MiB; if the repository really needs it, raise agent.git.disk"},
		"an error":         {func(w io.Writer) { line(w, "NAK\n"); line(w, "\x03no \x1b[2J more") }, "the server says: no [2J more"},
		"another channel":  {func(w io.Writer) { line(w, "NAK\n"); line(w, "\x07x") }, "the server breaks git's protocol: a channel of the sideband that there is not"},
		"not our ref":      {func(w io.Writer) { line(w, "ERR upload-pack: not our ref") }, "the server says: upload-pack: not our ref"},
		"text":             {func(w io.Writer) { fmt.Fprint(w, "<html>") }, "the server breaks git's protocol: a line that does not begin with its length"},
		"nothing":          {func(io.Writer) {}, "the server breaks git's protocol: its answer is cut short"},
		"cut short":        {bare(whole[:len(whole)-5]), "the server sent a bad pack: its checksum does not match: it is damaged or cut short"},
		"damaged":          {bare(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01z"), whole[13:]...)), "the server sent a bad pack: its checksum does not match: it is damaged or cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(&evil{refs: oneRef, pack: c.pack})
			defer srv.Close()
			cl := client(t, small)
			if err := fetchFrom(t, cl, srv.URL); err == nil || !strings.HasSuffix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want+";") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if left, err := os.ReadDir(cl.Scratch); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
			again := httptest.NewServer(&evil{refs: oneRef, pack: bare(whole)})
			defer again.Close()
			if err := fetchFrom(t, cl, again.URL); err != nil {
				t.Errorf("a good server afterwards: %v", err)
			}
		})
	}
}

// TestSlowDrip: a server that sends a byte now and then is left when the time is
// up.
func TestSlowDrip(t *testing.T) {
	drip := time.NewTicker(10 * time.Millisecond)
	defer drip.Stop()
	srv := httptest.NewServer(&evil{refs: oneRef, pack: func(w io.Writer) {
		line(w, "NAK\n")
		for range 10_000 {
			if _, err := io.WriteString(w, "0005\x02"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			<-drip.C
		}
	}})
	defer srv.Close()
	l := small
	l.Time = 200 * time.Millisecond
	if err := fetchFrom(t, client(t, l), srv.URL); err == nil || err.Error() != "no answer within 200ms" {
		t.Error(err)
	}
}

// TestRedirect: another server is not followed, and gets no credentials; the
// same server may say that a repository moved.
func TestRedirect(t *testing.T) {
	thief := &evil{refs: oneRef}
	other := httptest.NewServer(thief)
	defer other.Close()
	mux := http.NewServeMux()
	own := httptest.NewServer(mux)
	defer own.Close()
	mux.Handle("/new.git/", &evil{refs: oneRef})
	mux.HandleFunc("/old.git/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/new.git/info/refs?"+r.URL.RawQuery, http.StatusMovedPermanently)
	})
	mux.HandleFunc("/away.git/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/x.git/info/refs?"+r.URL.RawQuery, http.StatusFound)
	})
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(path string) error {
		_, err := client(t, small).List(t.Context(), Remote{URL: own.URL + path, Auth: Auth{TokenFile: secret}})
		return err
	}
	if err := at("/old.git"); err != nil {
		t.Error(err)
	}
	want := "the server redirects to another one, " + other.URL + ", which pullet does not follow: if that is right, configure it as url"
	if err := at("/away.git"); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if got := thief.user.Load(); got != nil {
		t.Errorf("the other server was asked, as %q", got)
	}
}

// TestCA: a server is believed when the configured authority signed for it.
func TestCA(t *testing.T) {
	srv := httptest.NewUnstartedServer(&evil{refs: oneRef})
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, small).List(t.Context(), Remote{URL: srv.URL, TLS: TLS{CA: ca}}); err != nil {
		t.Error(err)
	}
	var unknown *tls.CertificateVerificationError
	if _, err := client(t, small).List(t.Context(), Remote{URL: srv.URL}); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

// TestProxy: the proxy of the configuration is asked for the server.
func TestProxy(t *testing.T) {
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Host
		(&evil{refs: oneRef}).ServeHTTP(w, r)
	}))
	defer proxy.Close()
	if _, err := client(t, small).List(t.Context(), Remote{URL: "http://git.example.org/x.git", Proxy: proxy.URL}); err != nil {
		t.Error(err)
	}
	if host := <-asked; host != "git.example.org" {
		t.Errorf("asked for %s", host)
	}
}

// TestRetries: a server that is busy is asked again, one that refuses is not.
func TestRetries(t *testing.T) {
	for code, want := range map[int]int64{503: 3, 401: 1, 500: 1} {
		var n atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			http.Error(w, "\x1b[2Jsecret", code)
		}))
		_, err := client(t, small).List(context.Background(), Remote{URL: srv.URL})
		srv.Close()
		if err == nil || strings.Contains(err.Error(), "secret") || n.Load() != want {
			t.Errorf("%d: %v after %d", code, err, n.Load())
		}
	}
}

func FuzzListing(f *testing.F) {
	var buf strings.Builder
	oneRef(&buf)
	f.Add([]byte(buf.String()))
	f.Add([]byte("001e# service=git-upload-pack\n0000" + buf.String()))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := readListing(strings.NewReader(string(text)))
		if err == nil && len(l.Refs) > len(text)/40 {
			t.Errorf("%d references of %d bytes", len(l.Refs), len(text))
		}
		for _, r := range l.Refs {
			if r.Name != "HEAD" && r.Name.Validate() != nil {
				t.Errorf("%q is no name", r.Name)
			}
		}
	})
}

// FuzzAnswer reads what precedes a pack, and the sideband.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("0008NAK\n000a\x01PACK0000"), false)
	f.Add([]byte("0034shallow 012345678901234567890123456789012345678900000008NAK\nPACK"), true)
	f.Fuzz(func(t *testing.T, text []byte, deep bool) {
		l := newLines(strings.NewReader(string(text)))
		if _, err := l.beforePack(deep); err != nil {
			return
		}
		if n, _ := io.Copy(io.Discard, l.packReader()); n > int64(len(text)) {
			t.Errorf("%d bytes of %d", n, len(text))
		}
	})
}

// FuzzPack reads packs as the child does.
func FuzzPack(f *testing.F) {
	p := newPack(3)
	base := p.object(plumbing.BlobObject, []byte("0123456789"))
	p.delta(base, repeat(10, 2))
	p.named(plumbing.ComputeHash(plumbing.BlobObject, []byte("0123456789")), repeat(10, 5))
	f.Add(p.end())
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		var index bytes.Buffer
		if indexPack(file, &index, Limits{Memory: 8 << 20, Objects: 100}.Whole()) != nil {
			return
		}
		objects := int(binary.BigEndian.Uint32(text[8:]))
		if err := checkIndex(index.Bytes(), objects, int64(len(text)), [20]byte(text[len(text)-20:])); err != nil {
			t.Error(err)
		}
	})
}
