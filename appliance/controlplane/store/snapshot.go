package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// A snapshot is a header, the copy of tables.db, and the SHA-256 of both.
// Integers are little-endian:
//
//	0  magic "BASALTSN"     8 bytes
//	8  version              uint32 = 1
//	12 reserved             uint32 = 0
//	16 applied log index    uint64
//	24 revision             uint64
//	32 size of the copy     uint64, bytes
//	40 the copy, then 32 bytes of SHA-256
const (
	snapshotMagic   = "BASALTSN"
	snapshotVersion = 1
	snapshotHeader  = 40
	snapshotMax     = 1 << 40 // bytes; more is damage
)

type header struct {
	applied, revision, size uint64
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, snapshotHeader), snapshotMagic...)
	b = binary.LittleEndian.AppendUint32(b, snapshotVersion)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, h.applied)
	b = binary.LittleEndian.AppendUint64(b, h.revision)
	return binary.LittleEndian.AppendUint64(b, h.size)
}

func decodeHeader(b []byte) (header, error) {
	if len(b) != snapshotHeader || string(b[:8]) != snapshotMagic {
		return header{}, errors.New("it is not a snapshot of the store")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != snapshotVersion {
		return header{}, fmt.Errorf("the snapshot has version %d, this program supports %d", v, snapshotVersion)
	}
	h := header{
		applied:  binary.LittleEndian.Uint64(b[16:]),
		revision: binary.LittleEndian.Uint64(b[24:]),
		size:     binary.LittleEndian.Uint64(b[32:]),
	}
	if h.size > snapshotMax {
		return header{}, fmt.Errorf("invalid snapshot size of %d bytes", h.size)
	}
	return h, nil
}

// readHeader reads and checks the header of a snapshot.
func readHeader(r io.Reader) (header, error) {
	b := make([]byte, snapshotHeader)
	if _, err := io.ReadFull(r, b); err != nil {
		return header{}, fmt.Errorf("read header of snapshot: %w", err)
	}
	return decodeHeader(b)
}

// snapshot is a state that a read transaction keeps until Release.
type snapshot struct {
	tables *tables
	tx     *bbolt.Tx
	end    func()
}

// Persist writes the snapshot to Raft's sink.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.tables.guard(func() error { return s.writeTo(sink) }); err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release ends the read transaction.
func (s *snapshot) Release() {
	if s.end != nil {
		s.end()
		s.end = nil
	}
}

func (s *snapshot) writeTo(w io.Writer) error {
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	v := state.ViewOf(s.tx)
	h := header{applied: v.Applied(), revision: uint64(v.Revision()), size: uint64(s.tx.Size())}
	if _, err := both.Write(h.encode()); err != nil {
		return err
	}
	if _, err := s.tx.WriteTo(both); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// restore writes the snapshot beside the tables, checks it, and swaps the files in one
// rename: until then nothing changes.
func restore(t *tables, r io.Reader) error {
	path := t.path + ".restore"
	err := receive(path, r)
	if err == nil {
		err = t.replace(path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore snapshot: %w", err), removeLeftover(path))
	}
	return nil
}

// receive writes a complete, checked and synced copy of the snapshot's tables to path.
func receive(path string, r io.Reader) error {
	sum := sha256.New()
	h, err := readHeader(io.TeeReader(r, sum))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.MultiWriter(f, sum), r, int64(h.size))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r, want); err != nil {
		return fmt.Errorf("read checksum of snapshot: %w", err)
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return errors.New("the snapshot's checksum is wrong")
	}
	return verify(path, h)
}

// verify opens the copy and compares it with the header.
func verify(path string, h header) error {
	o := boltOptions()
	o.ReadOnly = true
	db, err := bbolt.Open(path, 0o600, o)
	if err != nil {
		return err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		v := state.ViewOf(tx)
		if !state.Usable(tx) {
			return errors.New("the snapshot's tables have an unknown format")
		}
		if v.Applied() != h.applied || uint64(v.Revision()) != h.revision {
			return errors.New("the snapshot's header does not match its tables")
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

func removeLeftover(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
