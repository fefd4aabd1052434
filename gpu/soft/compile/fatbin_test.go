package compile

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin/fatbintest"
)

const head = ".version 7.8\n.target sm_61\n.address_size 64\n"

// lz4 compresses text with one match for its repeated head: literals, then a copy.
func lz4(text string) []byte {
	const unit = "// padding\n" // 11 bytes, repeated by the text's head
	n := strings.Count(text, unit) - 1
	out := []byte{11<<4 | 15}
	out = append(out, unit...)
	out = append(out, byte(len(unit)), 0)
	rest := n*len(unit) - 4 - 15
	for ; rest >= 255; rest -= 255 {
		out = append(out, 255)
	}
	out = append(out, byte(rest))
	tail := text[(n+1)*len(unit):]
	out = append(out, 15<<4)
	l := len(tail) - 15
	for ; l >= 255; l -= 255 {
		out = append(out, 255)
	}
	return append(append(out, byte(l)), tail...)
}

// makeFatbin returns a fatbin with entries of (kind, arch, flags, payload, unpacked
// size).
func makeFatbin(entries ...[]any) []byte {
	le := binary.LittleEndian
	var body []byte
	for _, e := range entries {
		payload := e[3].([]byte)
		h := make([]byte, 64)
		le.PutUint16(h, uint16(e[0].(int)))
		le.PutUint32(h[4:], 64)
		le.PutUint64(h[8:], uint64(len(payload)))
		le.PutUint32(h[16:], uint32(len(payload)))
		le.PutUint32(h[28:], uint32(e[1].(int)))
		le.PutUint64(h[40:], uint64(e[2].(int)))
		le.PutUint64(h[56:], uint64(e[4].(int)))
		body = append(append(body, h...), payload...)
	}
	head := make([]byte, 16)
	le.PutUint32(head, 0xBA55ED50)
	le.PutUint16(head[4:], 1)
	le.PutUint16(head[6:], 16)
	le.PutUint64(head[8:], uint64(len(body)))
	return append(head, body...)
}

func TestFatbins(t *testing.T) {
	old := []byte(head + ".entry old() { ret; }\x00")
	text := strings.Repeat("// padding\n", 40) + head + ".entry packed() { ret; }"
	packed := lz4(text)
	for _, e := range [][2]int{{90, 100}, {100, 90}} { // the device's own, not the newest
		choice := makeFatbin([]any{1, e[0], 0, []byte(fmt.Sprint("arch", e[0])), 0}, []any{1, e[1], 0, []byte(fmt.Sprint("arch", e[1])), 0})
		if src, err := DefaultCapability.ptxOf(choice); err != nil || src != "arch90" {
			t.Errorf("PTX of architectures %v for capability 9.0 = %q, error %v; want arch90", e, src, err)
		}
		if src, err := Capability(100).ptxOf(choice); err != nil || src != "arch100" {
			t.Errorf("PTX of architectures %v for capability 10.0 = %q, error %v; want arch100", e, src, err)
		}
	}
	if src, err := DefaultCapability.ptxOf(makeFatbin([]any{1, 120, 0, []byte("newest"), 0}, []any{1, 100, 0, []byte("oldest"), 0})); err != nil || src != "oldest" {
		t.Errorf("PTX of architectures newer than the device's = %q, error %v; want the oldest", src, err)
	}
	elf := []any{2, 61, 0, []byte("\x7fELF machine code"), 0}
	good := makeFatbin(elf, []any{1, 50, 0, old, 0}, []any{1, 61, 0x2000, packed, len(text)})
	src, err := DefaultCapability.ptxOf(good)
	if err != nil || src != text {
		t.Fatalf("PTX of a compressed fatbin = %q, error %v; want %q", src, err, text)
	}
	for name, bad := range map[string][]byte{
		"only machine code": makeFatbin(elf),
		"no Zstandard":      makeFatbin([]any{1, 61, 0x8000, packed, len(text)}),
		"wrong size":        makeFatbin([]any{1, 61, 0x2000, packed, len(text) + 1}),
		"huge size":         makeFatbin([]any{1, 61, 0x2000, packed, 64<<20 + 1}),
		"short":             good[:len(good)-1],
	} {
		if _, err := DefaultCapability.ptxOf(bad); err == nil {
			t.Errorf("ptxOf of a fatbin with %s: no error, want one", name)
		}
	}
}

// TestLinkedLibraries checks that the PTX for the device in the output of nvcc -c, and
// in an archive of that, is linked.
func TestLinkedLibraries(t *testing.T) {
	ptxIn := func(text string) string { return string(makeFatbin([]any{1, 61, 0, []byte(head + text + "\x00"), 0})) }
	f := fatbintest.Object([2]string{"__nv_relfatbin", ptxIn(".extern .func g; .visible .func f { call g; ret; }")})
	unused := fatbintest.Object([2]string{"__nv_relfatbin", ptxIn(".extern .func nowhere; .visible .func h { call nowhere; ret; }")})
	image := func(g []byte) []byte {
		return (&abi.LinkImage{Objects: []abi.LinkObject{
			{Type: 1, Name: "main", Image: []byte(head + ".extern .func f; .visible .entry k() { call f; ret; }")},
			{Type: abi.LinkHostObject, Name: "g.o", Image: g},
			{Type: abi.LinkLibrary, Name: "lib.a", Image: fatbintest.Archive(unused, f)},
		}}).Append(nil)
	}
	good := fatbintest.Object([2]string{".nv_fatbin", ptxIn(".visible .func g { ret; }")})
	mod, _, err := DefaultCapability.parseImage(image(good))
	if err != nil || len(mod.Funcs) != 3 {
		t.Fatalf("linked module = %+v, error %v; want the functions k, g and f", mod, err)
	}
	for want, g := range map[string][]byte{
		"g.o: malformed image":                []byte("nothing"),
		"g.o: .*no PTX":                       fatbintest.Object([2]string{".nv_fatbin", string(makeFatbin([]any{2, 61, 0, []byte("\x7fELF"), 0}))}),
		"lib.a.*unresolved extern function g": fatbintest.Object(),
	} {
		if _, _, err := DefaultCapability.parseImage(image(g)); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("error of the link = %v, want one that matches %q", err, want)
		}
	}
}
