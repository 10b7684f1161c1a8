package datastore

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/gofrs/flock"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/trust"
)

// recipient is a key that opens backups: its public half, and what opens them.
func recipient(t *testing.T) (string, func() ([]trust.Identity, error)) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return key.Recipient().String(), func() ([]trust.Identity, error) {
		return trust.ParseIdentities(trust.File{Name: "key", Content: []byte(key.String())}, nil)
	}
}

// noKeys is for backups that are not encrypted.
func noKeys() ([]trust.Identity, error) { return nil, os.ErrNotExist }

// backedUp makes a backup of what serves, and returns its file.
func (f *fleet) backedUp() string {
	f.Helper()
	dir := filepath.Join(f.TempDir(), "backups")
	made, err := Backup(f.Context(), f.Config, fleetName, dir, time.Now())
	f.must(err)
	return filepath.Join(dir, made.Name)
}

func (f *fleet) restoring(from string, keys func() ([]trust.Identity, error)) Restoring {
	return Restoring{Config: f.Config, Fleet: fleetName, Node: "db1", From: from, Keys: keys}
}

// put and value are a key of the record.
func (f *fleet) put(value string) {
	f.Helper()
	_, err := f.client("admin").Put(f.Context(), "/pullet/prod/bell", value)
	f.must(err)
}

func (f *fleet) value() string {
	f.Helper()
	got, err := f.client("admin").Get(f.Context(), "/pullet/prod/bell")
	f.must(err)
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

// TestBackupAndRestore: a restore brings back what was on record, here and on a host that has nothing.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	f := made(t)
	key, keys := recipient(t)
	f.Backup.Recipients = []string{key}
	f.serve()
	f.put("before")
	sealed := f.backedUp()
	f.Backup.Recipients = nil
	plain := f.backedUp()
	for _, file := range []string{filepath.Dir(plain), plain, sealed} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	secret, err := os.ReadFile(f.AuthorityFile())
	f.must(err)
	line := bytes.Split(secret, []byte("\n"))[1]
	for _, file := range []string{plain, sealed} {
		if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, line) {
			t.Errorf("the key of the authority is in %s, %v", file, err)
		}
	}
	f.put("after")
	f.end()

	f.must(os.RemoveAll(f.file(memberDir)))
	done, err := f.restoring(plain, noKeys).Restore(time.Now())
	f.must(err)
	if done.Authority || time.Since(done.Made) > time.Hour {
		t.Errorf("%+v", done)
	}
	f.serve()
	if got := f.value(); got != "before" {
		t.Errorf("restored here: %q", got)
	}
	f.end()

	f.must(os.RemoveAll(f.Dir))
	r := f.restoring(sealed, keys)
	r.Believed = f.bundle
	done, err = r.Restore(time.Now())
	f.must(err)
	if !done.Authority || !strings.HasPrefix(done.Fingerprint, "sha256:") {
		t.Errorf("%+v", done)
	}
	f.serve()
	if got := f.value(); got != "before" {
		t.Errorf("restored where nothing was: %q", got)
	}
	if left, err := filepath.Glob(f.file("*restor*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// files are the files below a directory, with what is in them.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		out[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRestoreRefuses: whoever keeps backups may have put any byte into them. What is not a whole backup that the keeper
// of this fleet made is refused, and nothing is changed.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	f, other := made(t), made(t)
	key, keys := recipient(t)
	_, wrong := recipient(t)
	f.serve()
	f.put(strings.Repeat("x", 200_000)) // longer than what age encrypts at once
	plain := f.backedUp()
	f.Backup.Recipients = []string{key}
	sealed := f.backedUp()
	raw := filepath.Join(t.TempDir(), "etcd.db")
	_, err := f.download(t.Context(), fleetName, raw)
	f.must(err)
	f.end()
	other.serve()
	elsewhere := other.backedUp()
	other.end()
	f.must(os.RemoveAll(f.file(memberDir)))

	refuses := func(what string, r Restoring, want string) {
		t.Helper()
		before := files(t, f.Dir)
		_, err := r.Restore(time.Now())
		wantError(t, what, err, r.From+": "+want)
		after := files(t, f.Dir)
		if len(after) != len(before) {
			t.Errorf("%s: other files than before", what)
		}
		for name, text := range before {
			if after[name] != text {
				t.Errorf("%s: %s is another one", what, name)
			}
		}
	}
	at := filepath.Join(t.TempDir(), "backup")
	damaged := func(what, from string, change func([]byte) []byte, want string) {
		t.Helper()
		text, err := os.ReadFile(from)
		f.must(err)
		f.must(os.WriteFile(at, change(text), 0o600))
		refuses(what, f.restoring(at, keys), want)
	}
	foreign := map[string]string{"empty": "", "a text": "hello\n", "long": strings.Repeat("y", 100_000)}
	for what, text := range foreign {
		damaged(what, plain, func([]byte) []byte { return []byte(text) }, "this is no backup that pullet made")
	}
	refuses("a snapshot of etcd", f.restoring(raw, noKeys), "this is no backup that pullet made")
	refuses("of another authority", f.restoring(elsewhere, noKeys), "the keeper of this fleet did not sign it")
	named := f.restoring(plain, noKeys)
	named.Fleet = "stage"
	refuses("of another fleet", named, `it is of the fleet "prod", and this host of the fleet stage`)
	refuses("not there", f.restoring("/nowhere", noKeys), "no such file or directory")
	refuses("without a key", f.restoring(sealed, noKeys), "it is encrypted: ")
	refuses("with another key", f.restoring(sealed, wrong), "none of your keys opens it: name that of a recipient with --identity FILE")

	size := len(files(t, filepath.Dir(plain))[plain])
	for _, part := range []int{512, 600, 1024, 1536, 2048, 10_000, size / 2, size - 1600} {
		damaged("cut off", plain, func(b []byte) []byte { return b[:part] }, "it is cut off: the end of the backup is missing")
	}
	for _, part := range []int{100, 1000, 66_000, 100_000, size - 10} {
		damaged("encrypted and cut off", sealed, func(b []byte) []byte { return b[:part] }, "")
		damaged("encrypted and changed", sealed, func(b []byte) []byte { b[part] ^= 1; return b }, "")
	}
	swapped := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }
	}
	damaged("a byte of the record", plain, func(b []byte) []byte { b[size-100_000] ^= 1; return b }, "it was changed after it was made")
	damaged("other contents", plain, swapped(`"revision":`, `"revision":1`), "")
	damaged("a later time", plain, swapped(`"made":"20`, `"made":"21`), "the keeper of this fleet did not sign it")
	damaged("another signature", plain, swapped(`"signature":"M`, `"signature":"N`), "")

	f.must(os.Mkdir(f.file(memberDir), 0o700))
	_, err = f.restoring(plain, noKeys).Restore(time.Now())
	wantError(t, "there is a record", err, "there is a record in "+f.file(memberDir)+": stop pullet-etcd and move it away first")
}

// TestRestoreAuthority: a host without the key of the authority takes it from an encrypted backup, if it is the one
// that the host believes; anybody can make a backup with another one.
func TestRestoreAuthority(t *testing.T) {
	t.Parallel()
	f, forger := made(t), made(t)
	key, keys := recipient(t)
	forger.Backup.Recipients = []string{key}
	f.serve()
	plain := f.backedUp()
	f.end()
	forger.serve()
	forged := forger.backedUp()
	forger.end()
	f.must(os.RemoveAll(f.Dir))
	_, err := f.restoring(plain, noKeys).Restore(time.Now())
	wantError(t, "nobody has the key", err, "the fleet's authority comes first: there is no "+f.AuthorityFile()+", and none in the backup")
	r := f.restoring(forged, keys)
	r.Believed = f.bundle
	_, err = r.Restore(time.Now())
	wantError(t, "forged", err, "the authority in it is none that this host believes (etcd.tls.ca): sha256:")
	if left := files(t, f.Dir); len(left) > 0 {
		t.Error(left)
	}
}

// TestRestoreKeepsRevocations: who was revoked since the backup stays out, where the list of that is still there.
func TestRestoreKeepsRevocations(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	f.join(s, "web1", authority.Node)
	f.join(s, "web2", authority.Node)
	backup := f.backedUp()
	f.join(s, "web3", authority.Node) // the record will not know it
	for _, name := range []string{"web1", "web3"} {
		f.must(s.Identities.Revoke(t.Context(), name))
		f.must(s.Identities.AwaitRevoked(t.Context(), name))
	}
	f.end()
	for _, file := range []string{memberDir, serverFile, keeperFile, bundleFile} {
		f.must(os.RemoveAll(f.file(file)))
	}
	_, err := f.restoring(backup, noKeys).Restore(time.Now())
	f.must(err)
	for range 2 { // a restart changes nothing
		f.serve()
		c, err := f.keeperStore().Identities.All(t.Context())
		f.must(err)
		for _, name := range []string{"web1", "web3"} {
			cert, err := authority.Inspect(f.credentials[name])
			f.must(err)
			if r, there := c.Revoked[cert.Serial]; !there || !r.Until.After(time.Now()) {
				t.Errorf("%s is not revoked in the record: %+v", name, r)
			}
			if c, err := f.connect(f.credentials[name]); err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := c.Get(ctx, "/pullet/prod/bell"); err == nil {
					t.Errorf("%s is let in", name)
				}
				cancel()
				f.must(c.Close())
			}
		}
		if _, err := f.client("web2").Get(t.Context(), "/pullet/prod/bell"); err != nil {
			t.Error("web2 is not let in: ", err)
		}
		f.end()
	}
	f.must(os.WriteFile(f.file(crlFile), []byte("damaged"), 0o600))
	wantError(t, "damaged", Run(t.Context(), f.Options), f.file(crlFile)+" is damaged: it is no list of certificates that count no more")
}

// TestScheduledBackups: the keeper makes backups, keeps so many, counts the last one after a restart, and tries again
// after a failure.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	f := made(t)
	dir := filepath.Join(t.TempDir(), "backups")
	f.Backup = Backups{Every: shortest, To: dir, Keep: 2}
	names := func() (out []string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	f.serve()
	first := ""
	f.until("there are two backups, and newer ones", func() bool {
		now := names()
		if first == "" && len(now) > 0 {
			first = now[0]
		}
		return len(now) == 2 && now[0] > first
	})
	f.end()
	f.Backup.Every = shortest * 3600
	before := names()
	f.serve()
	patience.Stays(t, 2*time.Second, "no backup is made after a restart", func() bool { return slices.Equal(before, names()) })
	f.end()

	f.must(os.RemoveAll(dir))
	f.must(os.WriteFile(dir, nil, 0o600)) // in the way
	f.Backup.Every = shortest
	f.serve()
	f.until("it failed twice", func() bool {
		past, err := PastBackups(f.Config)
		return err == nil && past.Failed.Times >= 2 && strings.Contains(past.Failed.Why, "backup to "+dir)
	})
	f.must(os.Remove(dir))
	f.until("it is made again", func() bool { return len(names()) > 0 })
	f.until("the failure is over", func() bool {
		past, err := PastBackups(f.Config)
		return err == nil && past.Failed.Times == 0 && past.Last.Name != ""
	})
	f.end()
	f.must(os.WriteFile(f.file(pastFile), []byte("damaged"), 0o600))
	f.must(os.RemoveAll(dir))
	f.serve()
	f.until("it is made though nobody knows when the last one was", func() bool { return len(names()) > 0 })
}

// TestBackupStays: a backup that was made counts, also where an older one cannot be removed.
func TestBackupStays(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.Backup = Backups{To: filepath.Join(t.TempDir(), "backups"), Keep: 1}
	older := filepath.Join(f.Backup.To, "prod-20200101T000000Z.tar")
	f.must(os.MkdirAll(f.Backup.To, 0o700))
	f.must(os.WriteFile(older, nil, 0o600))
	if out, err := exec.Command("chattr", "+i", older).CombinedOutput(); err != nil {
		t.Skip("no file can be kept from root here: ", string(out))
	}
	t.Cleanup(func() { _ = exec.Command("chattr", "-i", older).Run() })
	k := &keeper{Options: f.Options}
	k.Backup.Every = shortest * 3600
	scheduled{k}.backUpIfDue(t.Context())
	past, err := PastBackups(k.Config)
	if err != nil || past.Last.Name == "" || !strings.Contains(past.Failed.Why, "what is too much in "+f.Backup.To+" stays: ") {
		t.Errorf("%+v, %v", past, err)
	}
	if wait := past.untilDue(k.Backup.Every.Std(), time.Now()); wait < 50*time.Minute {
		t.Error("it is made again in ", wait)
	}
}

// TestBackupAfterRotation: backups from before a rotation count no more: the next one is due at once.
func TestBackupAfterRotation(t *testing.T) {
	t.Parallel()
	f := made(t)
	f.Backup.To = filepath.Join(t.TempDir(), "backups")
	f.serve()
	before, err := Backup(t.Context(), f.Config, fleetName, f.Backup.To, time.Now())
	f.must(err)
	if past, err := PastBackups(f.Config); err != nil || past.Last.Name != before.Name {
		t.Errorf("%+v, %v", past, err)
	}
	_, err = Rotate(t.Context(), f.Config, false)
	f.must(err)
	_, err = Rotate(t.Context(), f.Config, true)
	f.must(err)
	if past, err := PastBackups(f.Config); err != nil || past.Last.Name != "" {
		t.Errorf("%+v, %v", past, err)
	}
	f.end()
	f.must(os.RemoveAll(f.file(memberDir)))
	_, err = f.restoring(filepath.Join(f.Backup.To, before.Name), noKeys).Restore(time.Now())
	wantError(t, "from before", err, "the keeper of this fleet did not sign it, or before its authority was exchanged")
}

// TestBackupFails: what stands in the way of a backup is said, and nothing is left of it.
func TestBackupFails(t *testing.T) {
	t.Parallel()
	f := created(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	f.must(os.WriteFile(file, nil, 0o600))
	open := filepath.Join(dir, "open")
	f.must(os.Mkdir(open, 0o700))
	f.must(os.Chmod(open, 0o777))
	for to, want := range map[string]string{
		"relative":  "relative is neither an absolute directory nor an https URL",
		file:        "backup to " + file + ": mkdir " + file + ": not a directory",
		open:        open + " can be written by everybody (mode 0777): chmod o-w " + open,
		"http://x/": "write an https URL",
	} {
		_, err := Backup(t.Context(), f.Config, fleetName, to, time.Now())
		wantError(t, to, err, want)
	}
	if left := files(t, open); len(left) > 0 {
		t.Error(left)
	}
	_, err := Backup(t.Context(), f.Config, fleetName, dir, time.Now().AddDate(0, 0, -2))
	wantError(t, "the clock is behind", err, "the certificate of keeper root: it is valid from ")
	lock := flock.New(f.file(backupLock))
	f.must(lock.Lock())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = Backup(ctx, f.Config, fleetName, dir, time.Now())
	wantError(t, "another one", err, "wait for another backup that is being made: context deadline exceeded")
	f.must(lock.Close())
	f.end()
	_, err = Backup(t.Context(), f.Config, fleetName, dir, time.Now())
	wantError(t, "nobody serves", err, "backup to "+dir+": ")
	if left, _ := filepath.Glob(f.file("backup.*")); !slices.Equal(left, []string{f.file(backupLock)}) {
		t.Error(left)
	}
}
