package codecache

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// open returns two workers' access to one cache.
func open(t *testing.T) (file *os.File, a, b *Cache) {
	t.Helper()
	file, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	list := [2]*Cache{}
	for i := range list {
		fd, err := unix.Dup(int(file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if list[i], err = Open(fd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = list[i].Close() })
	}
	return file, list[0], list[1]
}

func has(t *testing.T, c *Cache, key byte, want []byte) {
	t.Helper()
	if got, ok := c.Get(Key{key}); ok != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("Get of key %d = %d bytes, %v, want %d bytes", key, len(got), ok, len(want))
	}
}

func TestCodeIsKept(t *testing.T) {
	_, a, b := open(t)
	has(t, b, 1, nil)
	a.Put(Key{1}, []byte("first"))
	a.Put(Key{2}, []byte("second"))
	has(t, b, 1, []byte("first"))
	b.Put(Key{1}, []byte("replaced"))
	has(t, a, 1, []byte("replaced"))
	has(t, a, 2, []byte("second"))
	a.Put(Key{3}, nil)
	has(t, a, 3, nil)
	a.Put(Key{3}, make([]byte, MaxCode+1))
	has(t, a, 3, nil)
}

// The cache has a fixed size: new code replaces the oldest.
func TestOldCodeIsReplaced(t *testing.T) {
	file, a, b := open(t)
	code := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, MaxCode-i) }
	for i := range 9 {
		a.Put(Key{byte(i)}, code(i))
		has(t, b, byte(i), code(i))
	}
	has(t, b, 0, nil)
	has(t, b, 7, code(7))
	var newest Key
	for i := range entryCount + 100 {
		newest = Key{byte(i), byte(i >> 8), 9}
		a.Put(newest, []byte{1})
	}
	if got, ok := b.Get(newest); !ok || len(got) != 1 {
		t.Errorf("the newest code is %d bytes, %v, want 1", len(got), ok)
	}
	if st, err := file.Stat(); err != nil || st.Size() != Bytes {
		t.Errorf("size of the cache = %d, %v, want %d", st.Size(), err, Bytes)
	}
}

// A worker can neither grow nor shrink the cache, and another file is no cache.
func TestSizeIsSealed(t *testing.T) {
	file, _, _ := open(t)
	if err := file.Truncate(Bytes + 1); err == nil {
		t.Error("growing the cache returned no error")
	}
	if _, err := file.WriteAt([]byte("x"), Bytes); err == nil {
		t.Error("writing past the end of the cache returned no error")
	}
	if err := file.Truncate(0); err == nil {
		t.Error("shrinking the cache returned no error")
	}
	fd, err := unix.MemfdCreate("other", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, Bytes); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fd); err == nil {
		t.Error("Open of a memfd without seals returned no error")
	}
	if _, err := Open(-1); err == nil {
		t.Error("Open of no descriptor returned no error")
	}
}

// Whatever another worker has written, Get returns code that was put under the key or
// none, and Put works again afterwards.
func TestSpoiledCache(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 77))
		file, a, b := open(t)
		a.Put(Key{1}, []byte("first"))
		a.Put(Key{2}, []byte("second"))
		for range 1 + r.IntN(4) {
			junk := binary.LittleEndian.AppendUint64(nil, r.Uint64()>>r.IntN(64))
			if _, err := file.WriteAt(junk[:1+r.IntN(8)], int64(r.IntN(entriesAt+2*entrySize))); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := b.Get(Key{1}); ok && string(got) != "first" {
			t.Errorf("seed %d: Get from a spoiled cache = %q, want first or none", seed, got)
		}
		b.Put(Key{1}, []byte("again"))
		has(t, a, 1, []byte("again"))
	}
	file, a, _ := open(t)
	a.Put(Key{1}, []byte("first"))
	if _, err := file.WriteAt([]byte("F"), codeAt); err != nil {
		t.Fatal(err)
	}
	has(t, a, 1, nil)
}
