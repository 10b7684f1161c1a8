package extension_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// signer is a key of ssh-keygen.
type signer struct {
	t    *testing.T
	file string
}

func newSigner(t *testing.T) signer {
	t.Helper()
	s := signer{t, filepath.Join(t.TempDir(), "key")}
	s.keygen("-q", "-t", "ed25519", "-N", "", "-C", "", "-f", s.file)
	return s
}

func (s signer) keygen(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// sign makes the signature of a text.
func (s signer) sign(text string) render.Signed {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.keygen("-q", "-Y", "sign", "-n", "pullet-extension", "-f", s.file, file)
	signature, err := os.ReadFile(file + ".sig")
	if err != nil {
		s.t.Fatal(err)
	}
	return render.Signed{Text: []byte(text), Signature: signature}
}

// allowed are the keys of a host on which this one may sign, with options.
func (s signer) allowed(options string) func() (*trust.Keys, error) {
	return func() (*trust.Keys, error) {
		public, err := os.ReadFile(s.file + ".pub")
		if err != nil {
			return nil, err
		}
		return trust.ReadKeys(trust.File{}, trust.File{Name: "allowed", Content: []byte("ada " + options + string(public))})
	}
}

// text is what is signed about an executable.
func text(version, script string) string { return "acme.it " + version + " " + digestOf(script) + "\n" }

// answers is an executable that finds nothing to do, and says who it is.
func answers(who string) string { return answering("echo '{\"state\": \""+who+"\"}'", "") }

// signedFiles is a repository with an executable and what is signed about it.
func signedFiles(script string, s render.Signed, more string) fstest.MapFS {
	return fstest.MapFS{
		"extensions/it":            {Data: []byte(script)},
		"extensions/it.signed":     {Data: s.Text},
		"extensions/it.signed.sig": {Data: s.Signature},
		"extensions/it.yaml":       {Data: []byte("name: acme.it\nfile: it\nsignature: it.signed.sig\nversion: 4\n" + more)},
	}
}

// TestSignedFile: an executable of the repository runs where a key that may sign signed it.
func TestSignedFile(t *testing.T) {
	ada, eve := newSigner(t), newSigner(t)
	script := answers("four")
	signed := ada.sign(text("4", script))
	forged := signed
	forged.Signature = ada.sign(text("5", script)).Signature
	none := func() (*trust.Keys, error) { return nil, errors.New("nobody may sign here") }
	for name, c := range map[string]struct {
		signed  render.Signed
		more    string
		signers func() (*trust.Keys, error)
		want    string // of the failure; "" is none
	}{
		"right":              {signed, "", ada.allowed(""), ""},
		"with the digest":    {signed, "digest: " + digestOf(script) + "\n", ada.allowed(""), ""},
		"newer":              {ada.sign(text("4.1", script)), "", ada.allowed(""), ""},
		"another key":        {eve.sign(text("4", script)), "", ada.allowed(""), "acme.it check: extensions/it.signed is signed by key SHA256:"},
		"an expired key":     {signed, "", ada.allowed(`valid-before="20200101" `), "is not valid on 2"},
		"a key for git":      {signed, "", ada.allowed(`namespaces="git" `), `is not listed for the namespace "pullet-extension" (who may sign: extensions.allowedSigners of this host)`},
		"of another text":    {forged, "", ada.allowed(""), "acme.it check: extensions/it.signed has a signature of key SHA256:"},
		"nobody may sign":    {signed, "", none, "acme.it check: nobody may sign here"},
		"digest and no keys": {signed, "digest: " + digestOf(script) + "\n", none, "acme.it check: nobody may sign here"},
	} {
		s := actiontest.New(t)
		p, err := bindOn(s, extension.Host{Dir: cache(s), Signers: c.signers}, job(signedFiles(script, c.signed, c.more), "acme.it", "{}"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := s.Run(p)
		if c.want == "" && (r.Outcome != apply.OK || r.Result.State != "four") || c.want != "" && (r.Outcome != apply.Failed || !strings.Contains(r.Reason, c.want)) {
			t.Errorf("%s: %s %q, want %q", name, r.Outcome, r.Reason, c.want)
		}
	}
}

// TestSignedMistakes: what is wrong with a signature whoever made it is a mistake of the repository, at its place.
func TestSignedMistakes(t *testing.T) {
	ada := newSigner(t)
	script := answers("four")
	good := ada.sign(text("4", script))
	const at = "extensions/it.yaml:3:12: signature: "
	for name, c := range map[string]struct {
		change func(files fstest.MapFS)
		want   string
	}{
		"no signature":                    {func(f fstest.MapFS) { delete(f, "extensions/it.signed.sig") }, at + "there is no extensions/it.signed.sig in the repository (make it with: ssh-keygen -Y sign -n pullet-extension -f KEY extensions/it.signed)"},
		"no text":                         {func(f fstest.MapFS) { delete(f, "extensions/it.signed") }, at + "there is no extensions/it.signed in the repository (write into it, in one line: acme.it 4 sha256:DIGEST)"},
		"no SSH signature":                {func(f fstest.MapFS) { f["extensions/it.signed.sig"].Data = []byte("x") }, at + "extensions/it.signed has a signature that is not of SSH: make one with ssh-keygen -Y sign -n pullet-extension"},
		"a damaged one":                   {func(f fstest.MapFS) { f["extensions/it.signed.sig"].Data = good.Signature[:60] }, at + "extensions/it.signed has an SSH signature that cannot be read: "},
		"another executable":              {func(f fstest.MapFS) { f["extensions/it"].Data = []byte("evil") }, at + "extensions/it has " + digestOf("evil") + ", and extensions/it.signed names " + digestOf(script) + ": sign it anew"},
		"an older version":                {func(f fstest.MapFS) { f["extensions/it.signed"].Data = []byte(text("3.9", script)) }, at + "extensions/it.signed is of version 3.9, and the manifest wants 4 at least"},
		"another action":                  {func(f fstest.MapFS) { f["extensions/it.signed"].Data = []byte("acme.other 4 " + digestOf(script)) }, at + `extensions/it.signed is for the action "acme.other", and not for "acme.it"`},
		"the executable is signed itself": {func(f fstest.MapFS) { f["extensions/it.signed"].Data = []byte(script) }, at + `extensions/it.signed does not say "ACTION VERSION sha256:DIGEST" in one line, but "#!/bin/sh\n`},
	} {
		files := signedFiles(script, good, "")
		c.change(files)
		_, errs := extension.Load(render.Open(render.Layer{Name: "main", FS: files}), nil)
		if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, errs, c.want)
		}
	}
}

// server is a web server whose files can be changed.
type server struct {
	*httptest.Server
	files map[string]string
	asked map[string]int
}

func newServer(t *testing.T) *server {
	s := &server{files: map[string]string{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked[r.URL.Path]++
		if content, ok := s.files[r.URL.Path]; ok {
			_, _ = w.Write([]byte(content))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// serve puts an executable and what is signed about it on the server.
func (s *server) serve(script string, signed render.Signed) {
	s.files["/it"], s.files["/it.signed"], s.files["/it.signed.sig"] = script, string(signed.Text), string(signed.Signature)
}

// repository has an extension of this server, of a version at least.
func (s *server) repository(version string) fs.FS {
	return job(fstest.MapFS{"extensions/it.yaml": {Data: []byte("name: acme.it\nurl: " + s.URL + "/it\nsignature: " + s.URL + "/it.signed.sig?x=1\nversion: " + version + "\n")}}, "acme.it", "{}")
}

// TestSignedElsewhere: a host takes a newer executable from a server when the manifest asks for it, and never an older
// one; what it has does to go on without the server.
func TestSignedElsewhere(t *testing.T) {
	ada, eve, web, s := newSigner(t), newSigner(t), newServer(t), actiontest.New(t)
	host := extension.Host{Dir: cache(s), Signers: ada.allowed("")}
	three, four, five := ada.sign(text("3", answers("three"))), ada.sign(text("4", answers("four"))), ada.sign(text("5", answers("five")))
	runs := func(version, state, failure string) {
		t.Helper()
		p, err := bindOn(s, host, web.repository(version))
		if err != nil {
			t.Fatal(err)
		}
		r := s.Run(p)
		if failure == "" && (r.Outcome != apply.OK || r.Result.State != state) || failure != "" && (r.Outcome != apply.Failed || !strings.Contains(r.Reason, failure)) {
			t.Errorf("at least %s: %s, state %q, %q\nwant %q, %q", version, r.Outcome, r.Result.State, r.Reason, state, failure)
		}
	}
	web.serve(answers("three"), three)
	runs("4", "", "acme.it check: "+web.URL+"/it.signed?x=1 is of version 3, and the manifest wants 4 at least")
	web.serve(answers("four"), ada.sign("acme.other 4 "+digestOf(answers("four"))+"\n"))
	runs("4", "", `is for the action "acme.other", and not for "acme.it"`)
	web.serve(answers("four"), eve.sign(text("4", answers("four"))))
	runs("4", "", "which is not listed (who may sign: extensions.allowedSigners of this host)")
	web.serve(answers("evil"), four)
	runs("4", "", "acme.it check: "+web.URL+"/it has "+digestOf(answers("evil"))+", and "+web.URL+"/it.signed?x=1 names "+digestOf(answers("four"))+": it is not used")
	delete(web.files, "/it.signed.sig")
	runs("4", "", "acme.it check: cannot fetch the signature: "+web.URL+"/it.signed.sig?x=1 answers 404 Not Found")
	web.files["/it.signed"] = strings.Repeat("x", 100<<10)
	web.files["/it.signed.sig"] = string(four.Signature)
	runs("4", "", `does not say "ACTION VERSION sha256:DIGEST" in one line`)

	web.serve(answers("four"), four)
	runs("4", "four", "")
	fetched := web.asked["/it"]
	web.serve(answers("five"), five) // nobody asked for it
	runs("4", "four", "")
	runs("3", "four", "")
	if web.asked["/it"] != fetched {
		t.Error("it was fetched again")
	}
	runs("5", "five", "")
	web.serve(answers("four"), four) // the server goes back
	runs("5", "five", "")
	runs("4", "five", "")
	web.Close()
	runs("5", "five", "")
	runs("6", "", "cannot fetch the signature: ")
	host.Signers = ada.allowed(`valid-before="20200101" `)
	runs("5", "", "cannot fetch the signature: ")
}

// TestDamagedKeptSignature: what the host keeps of a signature is believed as little as what is fetched.
func TestDamagedKeptSignature(t *testing.T) {
	ada, web, s := newSigner(t), newServer(t), actiontest.New(t)
	host := extension.Host{Dir: cache(s), Signers: ada.allowed("")}
	web.serve(answers("four"), ada.sign(text("4", answers("four"))))
	kept := filepath.Join(cache(s), "acme.it.signed")
	for _, content := range []string{"", "-----BEGIN ", text("9", answers("evil")), text("9", answers("evil")) + "-----BEGIN SSH SIGNATURE-----\n"} {
		if err := os.MkdirAll(cache(s), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(kept, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := bindOn(s, host, web.repository("4"))
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Run(p); r.Outcome != apply.OK || r.Result.State != "four" {
			t.Errorf("%q: %s %q", content, r.Outcome, r.Reason)
		}
		if now, err := os.ReadFile(kept); err != nil || !strings.HasPrefix(string(now), text("4", answers("four"))) {
			t.Errorf("%q: it keeps %q, %v", content, now, err)
		}
	}
}

// TestPublishedExtension: an executable of the fleet's record is asked for once, held against its digest, and kept.
func TestPublishedExtension(t *testing.T) {
	ada, s, script := newSigner(t), actiontest.New(t), answers("four")
	content, away, asked := script, error(nil), 0
	host := extension.Host{Dir: cache(s), Signers: ada.allowed(""), Record: func(_ context.Context, digest string) ([]byte, error) {
		asked++
		if want := strings.TrimPrefix(digestOf(script), "sha256:"); digest != want {
			t.Errorf("asked for %s, want %s", digest, want)
		}
		return []byte(content), away
	}}
	signed := ada.sign(text("4", script))
	const start = "name: acme.it\ndatastore: true\n"
	byDigest := job(fstest.MapFS{"extensions/it.yaml": {Data: []byte(start + "digest: " + digestOf(script) + "\n")}}, "acme.it", "{}")
	bySignature := job(fstest.MapFS{"extensions/it.yaml": {Data: []byte(start + "signature: it.signed.sig\nversion: 4\n")},
		"extensions/it.signed": {Data: signed.Text}, "extensions/it.signed.sig": {Data: signed.Signature}}, "acme.it", "{}")
	runs := func(files fs.FS, failure string) {
		t.Helper()
		p, err := bindOn(s, host, files)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Run(p); (r.Outcome == apply.OK) != (failure == "") || r.Reason != failure {
			t.Errorf("%s %q, want %q", r.Outcome, r.Reason, failure)
		}
	}
	content = "evil"
	has := "acme.it check: the executable of acme.it in the fleet's record has " + digestOf("evil")
	runs(byDigest, has+", and the manifest wants "+digestOf(script)+": it is not used; print the right one with: pullet extension list")
	runs(bySignature, has+", and extensions/it.signed names "+digestOf(script)+": it is not used")
	away = errors.New("it is away")
	runs(byDigest, "acme.it check: cannot fetch the executable: it is away")
	content, away, asked = script, nil, 0
	runs(byDigest, "")
	away = errors.New("it is away")
	runs(byDigest, "")
	runs(bySignature, "")
	if asked != 1 {
		t.Errorf("the record was asked %d times", asked)
	}
}
