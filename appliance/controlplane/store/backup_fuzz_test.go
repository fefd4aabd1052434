package store

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// FuzzBackup reads what may be a backup: never a panic, never much memory, and
// what it accepts has a good checksum and only objects in their places.
func FuzzBackup(f *testing.F) {
	s, err := Open(Options{Dir: f.TempDir(), NodeID: "node-a", Reserve: 1})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := s.Apply(f.Context(), crashBatch(0, 1)); err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Backup(f.Context(), &b, []byte(`{"a":1}`)); err != nil {
		f.Fatal(err)
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	good := b.Bytes()[:b.Len()-sha256.Size]
	f.Add(good, true)
	f.Add(good[:40], true)
	f.Add(b.Bytes(), false)
	f.Add([]byte(backupMagic), true)
	f.Fuzz(func(t *testing.T, raw []byte, sign bool) {
		if sign { // so that what follows the checksum is reached
			sum := sha256.Sum256(raw)
			raw = append(bytes.Clone(raw), sum[:]...)
		}
		r := newBackupReader(bytes.NewReader(raw))
		info, err := r.info()
		if err != nil {
			if api.CodeOf(err) != api.CodeInvalid {
				t.Errorf("not a domain error: %v", err)
			}
			return
		}
		var last key
		for {
			kind, record, err := r.next()
			if err != nil {
				if api.CodeOf(err) != api.CodeInvalid {
					t.Errorf("not a domain error: %v", err)
				}
				return
			}
			if kind == recordEnd {
				break
			}
			if kind == recordUsage || kind == recordSum {
				w, err := backupRow(record)
				if err == nil {
					_, _ = takenOf(w, interned{})
				}
			}
			if kind != recordObject {
				continue
			}
			o, err := backupObject(record, last, info.Revision)
			if err != nil {
				return
			}
			last = key{o.Kind, o.Meta.ID}
		}
	})
}
