package fatbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
)

// empty returns a fatbin whose entries are the text.
func empty(text string) string {
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = append(b, 1, 0, headerSize, 0)
	return string(binary.LittleEndian.AppendUint64(b, uint64(len(text)))) + text
}

func TestObjects(t *testing.T) {
	two := fatbintest.Object([2]string{".text", "code"}, [2]string{".nv_fatbin", empty("odd") + "\x00\x00\x00\x00\x00" + empty("")})
	one := fatbintest.Object([2]string{"__nv_relfatbin", empty("relocatable")})
	list, err := Objects(fatbintest.Archive([]byte("symbols"), two, one, fatbintest.Object()))
	if err != nil || len(list) != 3 || string(list[0]) != empty("odd") || string(list[2]) != empty("relocatable") {
		t.Errorf("Objects of an archive = %q, %v, want 3 fatbins", list, err)
	}
	if list, err := Objects(one); err != nil || len(list) != 1 {
		t.Errorf("Objects of one object = %q, %v, want 1 fatbin", list, err)
	}
}

func TestMalformedObjects(t *testing.T) {
	good := fatbintest.Archive(fatbintest.Object([2]string{".nv_fatbin", empty("text")}))
	many := fatbintest.Object([2]string{".nv_fatbin", string(bytes.Repeat([]byte(empty("")), maxFatbins+1))})
	shared := fatbintest.Object([2]string{".nv_fatbin", empty("")}, [2]string{".nv_fatbin", empty("")})
	// The second section has all bytes of the file up to its headers, like the
	// first.
	at := int(binary.LittleEndian.Uint64(shared[40:]))
	for _, header := range []int{at + 2*elfSection, at + 3*elfSection} {
		binary.LittleEndian.PutUint64(shared[header+24:], 0)
		binary.LittleEndian.PutUint64(shared[header+32:], uint64(len(shared)))
	}
	for name, bad := range map[string][]byte{
		"nothing":        nil,
		"PTX":            []byte(".version 8.0"),
		"cut off":        good[:len(good)-2],
		"cut head":       good[:len(archiveMark)+memberHead-1],
		"size":           bytes.Replace(good, []byte("`\n"), []byte("9\n"), 1)[:40],
		"fatbin too big": fatbintest.Object([2]string{".nv_fatbin", empty("text")[:18]}),
		"too many":       many,
		"overlap":        shared,
	} {
		if list, err := Objects(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: Objects = %d fatbins, %v, want %v", name, len(list), err, ErrMalformed)
		}
	}
}

func FuzzObjects(f *testing.F) {
	f.Add(fatbintest.Archive(fatbintest.Object([2]string{".nv_fatbin", empty("text")}), []byte("x")))
	f.Add(fatbintest.Object([2]string{"__nv_relfatbin", empty("")}))
	f.Fuzz(func(t *testing.T, image []byte) {
		list, err := Objects(image)
		total := 0
		for _, b := range list {
			total += len(b)
		}
		if err == nil && total > len(image) {
			t.Errorf("fatbins have %d bytes, want at most the %d of the file", total, len(image))
		}
	})
}
