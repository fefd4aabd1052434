package sds

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// HeadBytes is how much of a file Inspect requires: the first cluster of any
// qcow2 image created with default settings, with all header extensions.
const HeadBytes = 64 << 10

// Sector is the smallest unit of a disk.
const Sector = 512

// Layout of a qcow2 header: QEMU's docs/interop/qcow2.rst, "Header" and
// "Header extensions". All numbers are big-endian.
const (
	qcow2Magic      = "QFI\xfb"
	qcow2V2Header   = 72
	qcow2V3Header   = 104
	incompatCorrupt = 1 << 1
	incompatData    = 1 << 2
	incompatKnown   = 1<<0 | 1<<3 | 1<<4 // dirty, compression type, extended L2
	extEnd          = 0
	extDataFile     = 0x44415441
	extLUKS         = 0x0537be77
)

// Inspect checks the beginning of a file that was received as a disk image and
// returns the size of its disk. size is the size of the whole file, in bytes.
//
// An image may name other files (a backing file, an external data file), which
// the hypervisor would then open on the node for the user: such an image is
// rejected before any other program reads it.
func Inspect(head []byte, size int64, want Format) (virtualBytes int64, err error) {
	got := sniff(head)
	switch {
	case size == 0:
		return 0, invalid(api.CauseImageFormat, "the file is empty")
	case got == "qcow2" && want == QCOW2:
		return inspectQCOW2(head, size)
	case want == QCOW2:
		return 0, invalid(api.CauseImageFormat, "not a qcow2 image: %s", describe(got)).WithHint("%s", hintFor(got))
	case want == ISO:
		return inspectISO(head, size, got)
	case want != Raw:
		return 0, api.Errorf(api.CodeInvalid, "unknown format %q, want raw, qcow2 or iso", want).At("spec.format")
	case got != "":
		return 0, invalid(api.CauseImageFormat, "not a raw disk image: %s", describe(got)).WithHint("%s", hintFor(got))
	case size%Sector != 0:
		return 0, invalid(api.CauseImageFormat, "not a raw disk image: its size of %d bytes is not a multiple of 512", size)
	case len(head) < Sector || head[510] != 0x55 || head[511] != 0xAA:
		// Every disk that a PC can boot from has it, also with GPT (UEFI 2.10,
		// section 5.2.3, protective MBR).
		return 0, invalid(api.CauseImageFormat, "not a raw disk image: it has no boot sector and no partition table")
	}
	return size, nil
}

// Layout of a disc: descriptors in its sectors from the 16th, each with an
// identifier from its second byte (ECMA-119, section 8.1; ECMA-167, part 2,
// section 9.1).
const (
	discSector      = 2048
	firstDescriptor = 16
)

// inspectISO checks that the file is a disc: ISO 9660, UDF, or both. got is what
// sniff has found.
func inspectISO(head []byte, size int64, got string) (int64, error) {
	udf := false
	for at := firstDescriptor * discSector; at+discSector <= len(head); at += discSector {
		switch string(head[at+1 : at+6]) {
		case "CD001":
			got = "ISO 9660"
		case "NSR02", "NSR03":
			udf = true
		}
	}
	switch {
	case got != "ISO 9660" && !udf:
		return 0, invalid(api.CauseImageFormat, "not an installation medium: %s, and it has no file system of a disc (ISO 9660 or UDF)", describe(got)).WithHint("%s", hintFor(got))
	case size%discSector != 0:
		return 0, invalid(api.CauseImageFormat, "the disc is truncated: its size of %d bytes is not a multiple of %d", size, discSector)
	}
	return size, nil
}

func inspectQCOW2(head []byte, size int64) (int64, error) {
	if len(head) < qcow2V2Header {
		return 0, invalid(api.CauseImageDamaged, "the qcow2 header is truncated")
	}
	be32 := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	be64 := func(at int) uint64 { return binary.BigEndian.Uint64(head[at:]) }
	version, clusterBits, virtual := be32(4), be32(20), be64(24)
	switch {
	case version != 2 && version != 3:
		return 0, invalid(api.CauseImageFormat, "qcow2 version %d is not supported", version)
	case be64(8) != 0 || be32(16) != 0:
		return 0, invalid(api.CauseImageNeedsFile, "the image is an overlay: it needs a backing file").WithHint("flatten it: qemu-img convert -O qcow2 IN OUT")
	case clusterBits < 9 || clusterBits > 21:
		return 0, invalid(api.CauseImageDamaged, "the qcow2 header is damaged: clusters of 2^%d bytes", clusterBits)
	case be32(32) != 0:
		return 0, invalid(api.CauseImageEncrypted, "the image is encrypted")
	case virtual == 0 || virtual > 1<<62 || virtual%Sector != 0:
		return 0, invalid(api.CauseImageDamaged, "the qcow2 header is damaged: a disk of %d bytes", virtual)
	case size < 1<<clusterBits:
		return 0, invalid(api.CauseImageDamaged, "the image is truncated in its first cluster")
	}
	extensions := qcow2V2Header
	if version == 3 {
		if len(head) < qcow2V3Header {
			return 0, invalid(api.CauseImageDamaged, "the qcow2 header is truncated")
		}
		features := be64(72)
		length := be32(100)
		switch {
		case features&incompatData != 0:
			return 0, invalid(api.CauseImageNeedsFile, "the image stores its data in another file")
		case features&incompatCorrupt != 0:
			return 0, invalid(api.CauseImageDamaged, "the image is marked as corrupt").WithHint("qemu-img check -r all FILE")
		case features&^uint64(incompatKnown) != 0:
			return 0, invalid(api.CauseImageFormat, "the image needs unsupported qcow2 features: %#x", features)
		case length < qcow2V3Header || length%8 != 0 || length > uint32(1)<<clusterBits:
			return 0, invalid(api.CauseImageDamaged, "the qcow2 header is damaged: invalid length of %d bytes", length)
		}
		extensions = int(length)
	}
	return int64(virtual), checkExtensions(head, extensions, 1<<clusterBits)
}

// checkExtensions checks the header extensions, which end with a zero type or
// at the end of the first cluster.
func checkExtensions(head []byte, at, cluster int) error {
	limit := min(len(head), cluster)
	for at+8 <= limit {
		kind, length := binary.BigEndian.Uint32(head[at:]), binary.BigEndian.Uint32(head[at+4:])
		switch {
		case kind == extEnd:
			return nil
		case kind == extDataFile:
			return invalid(api.CauseImageNeedsFile, "the image stores its data in another file")
		case kind == extLUKS:
			return invalid(api.CauseImageEncrypted, "the image is encrypted")
		case uint64(length) > uint64(limit-at-8):
			return invalid(api.CauseImageDamaged, "the qcow2 header is damaged: an extension of %d bytes", length)
		}
		at += 8 + (int(length)+7)&^7
	}
	return nil
}

// signatures are those of files that are sent by mistake.
var signatures = []struct{ name, prefix string }{
	{"qcow2", qcow2Magic},
	{"VMDK", "KDMV"}, {"VMDK", "# Disk DescriptorFile"}, {"VDI", "<<< "}, {"VHDX", "vhdxfile"}, {"VHD", "conectix"},
	{"QED", "QED\x00"}, {"Parallels", "WithoutFreeSpace"}, {"Parallels", "WithouFreSpacExt"}, {"LUKS", "LUKS\xba\xbe"},
	{"gzip", "\x1f\x8b"}, {"xz", "\xfd7zXZ\x00"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"bzip2", "BZh"}, {"zip", "PK\x03\x04"},
	{"PDF", "%PDF-"}, {"ELF", "\x7fELF"}, {"squashfs", "hsqs"},
}

// sniff returns the name of the file's format by its beginning; empty if it is
// unknown.
func sniff(head []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.prefix)) {
			return s.name
		}
	}
	text := strings.ToLower(string(bytes.TrimLeft(head[:min(len(head), 512)], " \t\r\n\xef\xbb\xbf")))
	for _, tag := range []string{"<!doctype", "<html", "<?xml", "<head"} {
		if strings.HasPrefix(text, tag) {
			return "HTML"
		}
	}
	if len(head) > 0x8006 && string(head[0x8001:0x8006]) == "CD001" && (head[510] != 0x55 || head[511] != 0xAA) {
		return "ISO 9660"
	}
	return ""
}

func describe(name string) string {
	switch name {
	case "":
		return "its format is unknown"
	case "gzip", "xz", "zstd", "bzip2", "zip":
		return "it is compressed with " + name
	case "HTML":
		return "it is a web page"
	}
	return "it is " + name
}

func hintFor(name string) string {
	switch name {
	case "qcow2":
		return "import it with the format qcow2"
	case "ISO 9660":
		return "import it with the format iso"
	case "gzip", "xz", "zstd", "bzip2", "zip":
		return "decompress it first"
	case "VMDK", "VDI", "VHDX", "VHD", "QED", "Parallels":
		return "convert it: qemu-img convert -O qcow2 IN OUT"
	}
	return "check what the address serves"
}

func invalid(cause api.CauseCode, format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, format, args...).Because(api.Cause{Code: cause}, "")
}

// VirtualBytes returns the size of the disk in a qcow2 file created by Basalt,
// which may be an overlay.
func VirtualBytes(head []byte) (int64, error) {
	if len(head) < qcow2V2Header || sniff(head) != "qcow2" {
		return 0, invalid(api.CauseImageDamaged, "the image has no qcow2 header")
	}
	size := binary.BigEndian.Uint64(head[24:])
	if size > 1<<62 {
		return 0, invalid(api.CauseImageDamaged, "the qcow2 header is damaged: a disk of %d bytes", size)
	}
	return int64(size), nil
}
