package pages

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// database returns the path of a file with inline buckets, others, and values over
// several pages.
func database(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		if err := db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"a", "b", "c"} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				if _, err := b.CreateBucketIfNotExists([]byte("!inner")); err != nil {
					return err
				}
				for i := range n {
					if err := b.Put(fmt.Appendf(nil, "k%07d", i*(7+round)), bytes.Repeat([]byte{byte(i)}, i*37%6000)); err != nil {
						return err
					}
				}
				for i := range n / 2 {
					if err := b.Delete(fmt.Appendf(nil, "k%07d", i*2)); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhole(t *testing.T) {
	for _, n := range []int{0, 1, 10, 300, 3000} {
		if err := Check(database(t, n)); err != nil {
			t.Errorf("check a database with %d keys: %v", n, err)
		}
	}
	if err := Check(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("check a missing file: %v", err)
	}
}

func TestDamaged(t *testing.T) {
	good, err := os.ReadFile(database(t, 50))
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMeta(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	root := int(m.root * m.pageSize)
	for name, c := range map[string]struct {
		damage func(b []byte) []byte
		want   string
	}{
		"cut":          {func(b []byte) []byte { return b[:2*m.pageSize] }, "it was truncated to"},
		"no metas":     {func(b []byte) []byte { clear(b[:2*m.pageSize]); return b }, "invalid database"},
		"other id":     {func(b []byte) []byte { b[root]++; return b }, "claims to be page"},
		"type":         {func(b []byte) []byte { b[root+8] = 0x10; return b }, "its type is 0x10"},
		"count":        {func(b []byte) []byte { b[root+11] = 0xff; return b }, "elements"},
		"overflow":     {func(b []byte) []byte { b[root+15] = 0xff; return b }, "beyond the end"},
		"key":          {func(b []byte) []byte { b[root+16+11] = 0x7f; return b }, "are not within the page"},
		"another file": {func([]byte) []byte { return bytes.Repeat([]byte("x"), 1<<16) }, "invalid database"},
	} {
		b := c.damage(bytes.Clone(good))
		if err := check(bytes.NewReader(b), int64(len(b))); err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("check with damage %q: %v, want %q", name, err, c.want)
		}
	}
}

// A file that Check accepts can be opened and read by bbolt.
func FuzzCheck(f *testing.F) {
	good, err := os.ReadFile(database(f, 20))
	if err != nil {
		f.Fatal(err)
	}
	m, err := readMeta(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		f.Fatal(err)
	}
	good = good[:m.end*m.pageSize]
	f.Add(uint32(0), uint8(0), uint32(0))
	f.Add(uint32(m.root*m.pageSize+8), uint8(3), uint32(m.root*m.pageSize+15))
	f.Fuzz(func(t *testing.T, at uint32, to uint8, also uint32) {
		b := bytes.Clone(good)
		b[int(at)%len(b)] ^= to
		b[int(also)%len(b)] ^= to
		if err := check(bytes.NewReader(b), int64(len(b))); err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
				return b.ForEach(func(k, v []byte) error {
					if v == nil {
						return nil
					}
					return b.Put(bytes.Clone(k), append(bytes.Clone(v), 1))
				})
			})
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Log(err)
		}
	})
}

// BenchmarkCheck measures the cost at a start: the pages of a file of about 100 MB, in
// the page cache; the baseline only reads the file.
func BenchmarkCheck(b *testing.B) {
	path := database(b, 2_000)
	raw, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"pages": func() error { return Check(path) },
		"read":  func() error { _, err := os.ReadFile(path); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
