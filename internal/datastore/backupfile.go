package datastore

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/trust"
)

// The files in a backup, in their order. Whoever keeps it could put another one in its place, with a record that lets
// him in: so the keeper signs what the contents are.
const (
	contentsEntry  = "contents.json"
	signatureEntry = "signature.json"
	authorityEntry = authorityFile // only where the backup is encrypted
	recordEntry    = "record.db"   // a snapshot, as etcdctl makes it
)

// backupPurpose is for what the keeper signs the contents.
const backupPurpose = "backup"

// contents say what is in a backup.
type contents struct {
	Fleet    string    `json:"fleet"`
	Made     time.Time `json:"made"`
	Cluster  uint64    `json:"cluster"`  // etcd's id of the cluster that has the record
	Revision int64     `json:"revision"` // of the record
	Bytes    int64     `json:"bytes"`    // of the snapshot
	SHA256   string    `json:"sha256"`   // of the snapshot but for its last 32 bytes, which say the same
}

// takeSnapshot has the member write a snapshot, and checks it.
func (c Config) takeSnapshot(ctx context.Context, fleet string, now time.Time) (p *packing, err error) {
	defer recovered(&err)
	p = &packing{Config: c, contents: contents{Fleet: fleet, Made: now.UTC().Truncate(time.Second)}}
	if p.to, err = c.Backup.recipients(); err != nil {
		return p, fmt.Errorf("datastore.backup.recipients: %w", err)
	}
	if p.keeper, err = os.ReadFile(c.file(keeperFile)); err != nil {
		return p, err
	}
	if p.authority, err = authority.SignedBy(p.keeper); err != nil {
		return p, err
	}
	if p.Cluster, err = c.download(ctx, fleet, c.file(snapshotFile)); err != nil {
		return p, err
	}
	if p.Bytes, p.SHA256, err = sumOf(c.file(snapshotFile)); err != nil {
		return p, err
	}
	status, err := snapshot.NewV3(toolLog()).Status(c.file(snapshotFile))
	p.Revision = status.Revision
	return p, err
}

// download writes a snapshot of etcd into a file, and returns the id of its cluster.
func (c Config) download(ctx context.Context, fleet, to string) (cluster uint64, err error) {
	store, err := c.connect(ctx, fleet)
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }() // it only read
	listed, err := store.Client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return 0, store.Explain(err)
	}
	from, err := store.Client.SnapshotWithVersion(ctx)
	if err != nil {
		return 0, store.Explain(err)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(f, from.Snapshot)
		err = errors.Join(err, f.Close())
	}
	return listed.Header.ClusterId, errors.Join(err, from.Snapshot.Close())
}

// sumOf is the digest that a snapshot has at its end, when it is right.
func sumOf(file string) (size int64, sum string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	digest := sha256.New()
	if _, err := io.CopyN(digest, f, info.Size()-sha256.Size); err != nil {
		return 0, "", fmt.Errorf("the snapshot is cut off: %w", err)
	}
	said, err := io.ReadAll(f)
	if err == nil && !bytes.Equal(said, digest.Sum(nil)) {
		err = errors.New("the snapshot is damaged: its digest is another one")
	}
	return info.Size(), hex.EncodeToString(said), err
}

// pack writes the backup. For recipients it is encrypted, and holds the key of the authority.
func (p *packing) pack(to io.Writer) error {
	counted := &counter{Writer: to}
	defer func() { p.packed = counted.bytes }()
	if len(p.to) == 0 {
		return p.packInto(counted, nil)
	}
	key, err := os.ReadFile(p.file(authorityFile))
	if err != nil {
		return err
	}
	sealed, err := trust.SealStream(counted, p.to)
	if err != nil {
		return err
	}
	return errors.Join(p.packInto(sealed, key), sealed.Close())
}

func (p *packing) packInto(to io.Writer, key []byte) error {
	what, signed, err := p.sign()
	if err != nil {
		return err
	}
	record, err := os.Open(p.file(snapshotFile))
	if err != nil {
		return err
	}
	defer func() { _ = record.Close() }()
	w := tar.NewWriter(to)
	entry := func(name string, size int64, content io.Reader) {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: p.Made})
		}
		if err == nil {
			_, err = io.Copy(w, content)
		}
	}
	entry(contentsEntry, int64(len(what)), bytes.NewReader(what))
	entry(signatureEntry, int64(len(signed)), bytes.NewReader(signed))
	if key != nil {
		entry(authorityEntry, int64(len(key)), bytes.NewReader(key))
	}
	entry(recordEntry, p.Bytes, record)
	return errors.Join(err, w.Close())
}

// sign is what the backup holds, and the keeper's signature. A restore holds it against the keeper's certificate: where
// the clock of this host is wrong, that is not valid at the time of the backup.
func (p *packing) sign() (what, signed []byte, err error) {
	if what, err = json.Marshal(p.contents); err != nil {
		return nil, nil, err
	}
	if signed, err = authority.Sign(p.keeper, backupPurpose, what); err != nil {
		return nil, nil, err
	}
	believed, err := os.ReadFile(p.file(bundleFile))
	if err == nil {
		_, err = authority.Verify(believed, backupPurpose, what, signed, p.Made)
	}
	return what, signed, err
}

// counter counts what is written.
type counter struct {
	io.Writer
	bytes int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.bytes += int64(n)
	return n, err
}
