package sds

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// qcow2 returns the first cluster of a 1 GiB disk with a version 3 header,
// with change applied.
func qcow2(change func(h []byte)) []byte {
	h := make([]byte, HeadBytes)
	copy(h, qcow2Magic)
	binary.BigEndian.PutUint32(h[4:], 3)
	binary.BigEndian.PutUint32(h[20:], 16)
	binary.BigEndian.PutUint64(h[24:], 1<<30)
	binary.BigEndian.PutUint32(h[96:], 4)
	binary.BigEndian.PutUint32(h[100:], 104)
	change(h)
	return h
}

func bootable(size int) []byte {
	b := make([]byte, size)
	b[510], b[511] = 0x55, 0xAA
	return b
}

// disc returns a disc of the given number of sectors, with the identifiers of its
// descriptors.
func disc(sectors int, identifiers ...string) []byte {
	b := make([]byte, sectors*discSector)
	for i, id := range identifiers {
		copy(b[(firstDescriptor+i)*discSector+1:], id)
	}
	return b
}

func extension(at int, kind uint32, data string) func([]byte) {
	return func(h []byte) {
		binary.BigEndian.PutUint32(h[at:], kind)
		binary.BigEndian.PutUint32(h[at+4:], uint32(len(data)))
		copy(h[at+8:], data)
	}
}

func TestInspect(t *testing.T) {
	u32 := func(at int, v uint32) func([]byte) {
		return func(h []byte) { binary.BigEndian.PutUint32(h[at:], v) }
	}
	u64 := func(at int, v uint64) func([]byte) {
		return func(h []byte) { binary.BigEndian.PutUint64(h[at:], v) }
	}
	for _, c := range []struct {
		name    string
		head    []byte
		format  Format
		virtual int64
		says    string // empty: accepted
	}{
		{"qcow2", qcow2(func([]byte) {}), QCOW2, 1 << 30, ""},
		{"qcow2 with zstd clusters", qcow2(u64(72, 1<<3)), QCOW2, 1 << 30, ""},
		{"qcow2 with a feature table", qcow2(extension(104, 0x6803f857, "names")), QCOW2, 1 << 30, ""},
		{"raw", bootable(1024), Raw, 1024, ""},

		{"backing file", qcow2(u64(8, 512)), QCOW2, 0, "backing file"},
		{"backing file of unknown place", qcow2(u32(16, 11)), QCOW2, 0, "backing file"},
		{"external data file", qcow2(u64(72, 1<<2)), QCOW2, 0, "another file"},
		{"data file's name only", qcow2(extension(104, 0x44415441, "/etc/shadow")), QCOW2, 0, "another file"},
		{"data file behind another extension", qcow2(func(h []byte) {
			extension(104, 0x6803f857, "12345")(h)
			extension(104+8+8, 0x44415441, "/etc/shadow")(h)
		}), QCOW2, 0, "another file"},
		{"extension too long", qcow2(u32(108, 0)), QCOW2, 1 << 30, ""},
		{"extension past the cluster", qcow2(func(h []byte) { u32(104, 7)(h); u32(108, 0xfffffff8)(h) }), QCOW2, 0, "damaged"},
		{"encrypted", qcow2(u32(32, 2)), QCOW2, 0, "encrypted"},
		{"LUKS", qcow2(extension(104, 0x0537be77, "0123456789abcdef")), QCOW2, 0, "encrypted"},
		{"damaged bit", qcow2(u64(72, 1<<1)), QCOW2, 0, "corrupt"},
		{"feature of the future", qcow2(u64(72, 1<<40)), QCOW2, 0, "unsupported"},
		{"version 4", qcow2(u32(4, 4)), QCOW2, 0, "version"},
		{"no size", qcow2(u64(24, 0)), QCOW2, 0, "0 bytes"},
		{"absurd size", qcow2(u64(24, 1<<63)), QCOW2, 0, "damaged"},
		{"absurd clusters", qcow2(u32(20, 64)), QCOW2, 0, "clusters"},
		{"short header", []byte(qcow2Magic + "\x00\x00\x00\x03"), QCOW2, 0, "truncated"},
		{"short first cluster", qcow2(func([]byte) {})[:4096], QCOW2, 0, "truncated"},
		{"raw sent as qcow2", bootable(1024), QCOW2, 0, "not a qcow2 image"},

		{"empty", nil, Raw, 0, "empty"},
		{"qcow2 sent as raw", qcow2(func([]byte) {}), Raw, 0, "it is qcow2"},
		{"text", bytes.Repeat([]byte("no image\n"), 512), Raw, 0, "boot sector"},
		{"odd length", bootable(1025), Raw, 0, "multiple of 512"},
		{"web page", append([]byte(" \n<!DOCTYPE html>"), bootable(512*3-17)...), Raw, 0, "web page"},
		{"compressed", append([]byte("\xfd7zXZ\x00"), make([]byte, 1018)...), Raw, 0, "compressed with xz"},
		{"VMDK", append([]byte("KDMV"), make([]byte, 1020)...), Raw, 0, "VMDK"},
		{"no format", bootable(1024), "vhd", 0, "want raw, qcow2 or iso"},
		{"disc sent as raw", disc(40, "CD001"), Raw, 0, "ISO 9660"},
		{"disc sent as qcow2", disc(40, "CD001"), QCOW2, 0, "ISO 9660"},

		{"ISO 9660", disc(40, "CD001", "CD001"), ISO, 40 * 2048, ""},
		{"ISO 9660 that is a disk, too", append(bootable(512), disc(40, "CD001")[512:]...), ISO, 40 * 2048, ""},
		{"both", disc(40, "CD001", "CD001", "BEA01", "NSR02", "TEA01"), ISO, 40 * 2048, ""},
		{"UDF", disc(40, "BEA01", "NSR03", "TEA01"), ISO, 40 * 2048, ""},
		{"descriptors without a file system", disc(40, "BEA01", "TEA01"), ISO, 0, "ISO 9660 or UDF"},
		{"disk sent as disc", bootable(40 * 2048), ISO, 0, "not an installation medium"},
		{"qcow2 sent as disc", qcow2(func([]byte) {}), ISO, 0, "it is qcow2"},
		{"web page sent as disc", append([]byte("<!doctype html>"), make([]byte, 80<<10)...), ISO, 0, "web page"},
		{"compressed disc", append([]byte("\x1f\x8b"), make([]byte, 80<<10)...), ISO, 0, "compressed with gzip"},
		{"short disc", disc(16), ISO, 0, "not an installation medium"},
		{"truncated disc", disc(40, "CD001")[:40*2048-1], ISO, 0, "truncated"},
		{"empty disc", nil, ISO, 0, "empty"},
	} {
		virtual, err := Inspect(c.head[:min(len(c.head), HeadBytes)], int64(len(c.head)), c.format)
		switch {
		case c.says == "":
			if err != nil || virtual != c.virtual {
				t.Errorf("Inspect of %s = %d, %v, want %d", c.name, virtual, err, c.virtual)
			}
		case err == nil || api.CodeOf(err) != api.CodeInvalid || !strings.Contains(err.Error(), c.says):
			t.Errorf("Inspect of %s = %v, want invalid with %q", c.name, err, c.says)
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(qcow2(func([]byte) {})[:256], int64(HeadBytes))
	f.Add(qcow2(extension(104, 0x44415441, "/etc/shadow"))[:256], int64(HeadBytes))
	f.Add(bootable(512), int64(512))
	f.Add([]byte("<html>"), int64(6))
	f.Add(disc(18, "BEA01", "NSR02"), int64(18*discSector))
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		if size < int64(len(head)) {
			size = int64(len(head))
		}
		for _, format := range []Format{Raw, QCOW2, ISO} {
			virtual, err := Inspect(head, size, format)
			if err == nil && virtual <= 0 {
				t.Errorf("Inspect as %s = a disk of %d bytes, want more than 0", format, virtual)
			}
			if err != nil && api.CodeOf(err) != api.CodeInvalid {
				t.Errorf("Inspect as %s = %v, want invalid", format, err)
			}
			if err == nil && format == QCOW2 && binary.BigEndian.Uint64(head[8:]) != 0 {
				t.Error("Inspect accepted an image with a backing file, want invalid")
			}
		}
	})
}

func TestVolumeBytes(t *testing.T) {
	l := Limits{MaxVirtualBytes: 10 * mib}
	for _, c := range []struct {
		want, image, got int64
		code             api.Code
	}{
		{want: 1, got: mib},
		{want: mib, got: mib},
		{image: mib + 512, got: 2 * mib},
		{want: 3 * mib, image: mib, got: 3 * mib},
		{want: mib, image: 2 * mib, code: api.CodeInvalid},
		{code: api.CodeInvalid},
		{want: -1, image: mib, code: api.CodeInvalid},
		{want: 11 * mib, code: api.CodeTooLarge},
		{want: 1<<63 - 1, code: api.CodeTooLarge},
	} {
		got, err := l.VolumeBytes(c.want, c.image)
		if c.code == "" && (err != nil || got != c.got) || c.code != "" && api.CodeOf(err) != c.code {
			t.Errorf("VolumeBytes(%d, %d) = %d, %v, want %d, code %q", c.want, c.image, got, err, c.got, c.code)
		}
	}
}
