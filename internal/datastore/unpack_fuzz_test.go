package datastore

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzBackup: whatever is in a file, unpack takes it or refuses it; what it takes is the record that the keeper signed.
func FuzzBackup(f *testing.F) {
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	c := Config{Dir: filepath.Join(f.TempDir(), "d"), Addresses: Addresses{Client: "127.0.0.1:1"}}
	n, err := Create(c, fleetName, time.Now())
	must(err)
	must(n.Finish())
	sum := sha256.Sum256([]byte("the record"))
	record := append([]byte("the record"), sum[:]...)
	must(os.WriteFile(c.file(snapshotFile), record, 0o600))
	p := &packing{Config: c, contents: contents{Fleet: fleetName, Made: time.Now().UTC(), Cluster: 1}}
	p.keeper, err = os.ReadFile(c.file(keeperFile))
	must(err)
	p.Bytes, p.SHA256, err = sumOf(c.file(snapshotFile))
	must(err)
	var good bytes.Buffer
	must(p.pack(&good))
	f.Add(good.Bytes())
	f.Add(good.Bytes()[:2000])
	f.Add([]byte("age-encryption.org/v1\n-> X25519 x\n"))
	r := Restoring{Config: c, Fleet: fleetName, Node: "db1", From: filepath.Join(f.TempDir(), "backup"), Keys: noKeys}
	taken := func(t testing.TB, backup []byte) bool {
		if err := os.WriteFile(r.From, backup, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := r.unpack()
		return err == nil
	}
	if !taken(f, good.Bytes()) {
		f.Fatal("a good one is refused")
	}
	f.Fuzz(func(t *testing.T, backup []byte) {
		if !taken(t, backup) {
			return
		}
		if got, err := os.ReadFile(c.file(restoringFile)); err != nil || !bytes.Equal(got, record) {
			t.Errorf("it takes %q, %v", got, err)
		}
	})
}
