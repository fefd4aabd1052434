package fatbin

import (
	"encoding/binary"
	"testing"
)

// several returns a fatbin with the images of other ones.
func several(images ...[]byte) []byte {
	all := make([]byte, headerSize)
	copy(all, images[0])
	for _, image := range images {
		all = append(all, image[headerSize:]...)
	}
	binary.LittleEndian.PutUint64(all[8:], uint64(len(all)-headerSize))
	return all
}

// withHeader returns a fatbin of one image with more bytes in its header.
func withHeader(image []byte, more string) []byte {
	le := binary.LittleEndian
	out := append([]byte(nil), image[:headerSize+entrySize]...)
	out = append(append(out, more...), image[headerSize+entrySize:]...)
	le.PutUint32(out[headerSize+4:], uint32(entrySize+len(more)))
	le.PutUint64(out[8:], uint64(len(out)-headerSize))
	return out
}

// named returns a fatbin of one image with a name in its header.
func named(image []byte, name string) []byte {
	image = withHeader(image, name)
	binary.LittleEndian.PutUint32(image[headerSize+32:], entrySize)
	binary.LittleEndian.PutUint32(image[headerSize+36:], uint32(len(name)))
	return image
}

func TestJIT(t *testing.T) {
	text := func(arch uint32, s string) []byte { return make1(PTX, arch, 0, 0, []byte(s)) }
	code := func(arch uint32) []byte { return make1(ELF, arch, 0, 0, []byte("code")) }
	for _, c := range []struct {
		name         string
		image        []byte
		major, minor uint32
		want         string // empty: it is left to libcuda
	}{
		{"PTX", text(70, "text\x00\x00"), 9, 0, "text"},
		{"compressed PTX", make1(PTX, 61, flagLZ4, len(unpacked), packed), 9, 0, unpacked},
		{"PTX of this architecture", text(90, "text"), 9, 0, "text"},
		{"PTX of a newer architecture", text(100, "text"), 9, 0, ""},
		{"the highest that the GPU has", several(text(70, "70"), text(80, "80"), text(100, "100"), text(75, "75")), 9, 0, "80"},
		{"machine code for the GPU", several(text(70, "text"), code(90)), 9, 0, ""},
		{"machine code for a lower minor version", several(code(80), text(70, "text")), 8, 6, ""},
		{"machine code for a higher minor version", several(code(86), text(80, "text")), 8, 0, "text"},
		{"machine code for another GPU", several(code(80), code(100), text(80, "text")), 9, 0, "text"},
		{"machine code for an unknown GPU", several(code(0), text(80, "text")), 9, 0, ""},
		{"machine code for a GPU with two digits", several(code(120), text(80, "text")), 12, 1, ""},
		{"two of the same architecture", several(text(70, "a"), text(90, "b"), text(90, "c")), 9, 0, ""},
		{"another kind", several(text(70, "text"), make1(3, 70, 0, 0, []byte("x"))), 9, 0, ""},
		{"options for the compiler", withHeader(text(70, "text"), "-O1\x00\x00\x00\x00\x00"), 9, 0, ""},
		{"no options", withHeader(text(70, "text"), "\x00\x00\x00\x00\x00\x00\x00\x00"), 9, 0, "text"},
		{"a name", named(text(70, "text"), "file.ptx"), 9, 0, "text"},
		{"broken compression", make1(PTX, 61, flagLZ4, len(unpacked)+1, packed), 9, 0, ""},
		{"nothing", make1(PTX, 61, 0, 0, nil)[:headerSize+10], 9, 0, ""},
	} {
		got, ok := JIT(c.image, c.major, c.minor)
		if ok != (c.want != "") || string(got) != c.want && ok {
			t.Errorf("%s: JIT = %q, %v, want %q", c.name, got, ok, c.want)
		}
	}
}

// FuzzJIT checks that hostile fatbins cause no panic and have limits.
func FuzzJIT(f *testing.F) {
	f.Add(make1(PTX, 70, 0, 0, []byte("text")))
	f.Add(named(make1(PTX, 70, 0, 0, []byte("text")), "file.ptx"))
	f.Add(withHeader(make1(ELF, 70, 0, 0, []byte("text")), "-O1"))
	f.Fuzz(func(t *testing.T, image []byte) {
		if source, ok := JIT(image, 9, 0); ok && len(source) > maxUnpacked {
			t.Errorf("JIT = %d bytes, want at most %d", len(source), maxUnpacked)
		}
	})
}
