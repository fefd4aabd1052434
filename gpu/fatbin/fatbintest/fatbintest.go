// Package fatbintest creates images of modules for tests.
package fatbintest

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// noBits is the section type of sections without bytes in the file; the other
// numbers below are those of gpu/fatbin's reader (System V ABI, and public tools
// for what NVIDIA adds).
const noBits = 8

// Cubin returns a small cubin: kernel k(u64, u32), variable v of 24 bytes, and a
// function that is not a kernel.
func Cubin() []byte {
	le := binary.LittleEndian
	names := "\x00k\x00v\x00helper\x00.shstrtab\x00.symtab\x00.text.k\x00.nv.info.k\x00.nv.global\x00"
	at := func(s string) uint32 { return uint32(strings.Index(names, "\x00"+s+"\x00") + 1) }
	param := func(ordinal, offset uint16, size uint32) []byte {
		b := []byte{4, 0x17, 12, 0, 0, 0, 0, 0}
		b = le.AppendUint16(b, ordinal)
		b = le.AppendUint16(b, offset)
		return le.AppendUint32(b, size<<18)
	}
	info := append([]byte{3, 0x1b, 0xff, 0}, append(param(1, 8, 4), param(0, 0, 8)...)...) // MAXREG_COUNT, and the parameters in reverse order
	symbol := func(name string, kind, other byte, section uint16, size uint64) []byte {
		b := le.AppendUint32(nil, at(name))
		b = append(b, 0x10|kind, other)
		b = le.AppendUint16(b, section)
		b = le.AppendUint64(b, 0)
		return le.AppendUint64(b, size)
	}
	symbols := append(make([]byte, 24), symbol("k", 2, 0x10, 3, 8)...)
	symbols = append(symbols, symbol("helper", 2, 0, 3, 8)...)
	symbols = append(symbols, symbol("v", 1, 0, 5, 24)...)
	image := make([]byte, 64)
	copy(image, "\x7fELF\x02\x01\x01")
	le.PutUint16(image[18:], 190)
	image[48] = 70
	headers := make([]byte, 64)
	n := uint16(1)
	add := func(name string, kind, link uint32, body []byte) {
		h := make([]byte, 64)
		le.PutUint32(h, at(name))
		le.PutUint32(h[4:], kind)
		le.PutUint64(h[24:], uint64(len(image)))
		le.PutUint64(h[32:], uint64(len(body)))
		le.PutUint32(h[40:], link)
		headers = append(headers, h...)
		if kind != noBits {
			image = append(image, body...)
		}
		n++
	}
	add(".shstrtab", 3, 0, []byte(names))
	add(".symtab", 2, 1, symbols)
	add(".text.k", 1, 0, make([]byte, 8))
	add(".nv.info.k", 0x70000000, 0, info)
	add(".nv.global", noBits, 0, make([]byte, 24))
	le.PutUint64(image[40:], uint64(len(image)))
	le.PutUint16(image[58:], 64)
	le.PutUint16(image[60:], n)
	le.PutUint16(image[62:], 1)
	return append(image, headers...)
}

// Wrap returns a fatbin with one image, which states no architecture.
func Wrap(kind uint16, payload []byte) []byte { return WrapFor(kind, 0, payload) }

// WrapFor returns a fatbin with one image for an architecture (61 for sm_61).
func WrapFor(kind uint16, arch uint32, payload []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, 16+64)
	le.PutUint32(b, 0xBA55ED50)
	le.PutUint16(b[6:], 16)
	le.PutUint64(b[8:], uint64(64+len(payload)))
	le.PutUint16(b[16:], kind)
	le.PutUint32(b[20:], 64)
	le.PutUint64(b[24:], uint64(len(payload)))
	le.PutUint32(b[16+28:], arch)
	return append(b, payload...)
}

// Object returns a host object with sections of these names and contents.
func Object(sections ...[2]string) []byte {
	le := binary.LittleEndian
	image, names := make([]byte, 64), "\x00.names\x00"
	copy(image, "\x7fELF\x02\x01\x01")
	le.PutUint16(image[18:], 62) // x86-64
	headers := make([]byte, 64)
	add := func(name int, body string) {
		h := make([]byte, 64)
		le.PutUint32(h, uint32(name))
		le.PutUint32(h[4:], 1)
		le.PutUint64(h[24:], uint64(len(image)))
		le.PutUint64(h[32:], uint64(len(body)))
		headers, image = append(headers, h...), append(image, body...)
	}
	for _, s := range sections {
		names += s[0] + "\x00"
	}
	add(1, names)
	at := len("\x00.names\x00")
	for _, s := range sections {
		add(at, s[1])
		at += len(s[0]) + 1
	}
	le.PutUint64(image[40:], uint64(len(image)))
	le.PutUint16(image[58:], 64)
	le.PutUint16(image[60:], uint16(len(sections)+2))
	le.PutUint16(image[62:], 1)
	return append(image, headers...)
}

// Archive returns an archive of members with generated names.
func Archive(members ...[]byte) []byte {
	b := []byte("!<arch>\n")
	for i, m := range members {
		b = append(b, fmt.Sprintf("%-16s%-12d%-6d%-6d%-8o%-10d`\n", fmt.Sprint("m", i, "/"), 0, 0, 0, 0o644, len(m))...)
		b = append(append(b, m...), make([]byte, len(m)&1)...)
	}
	return b
}
