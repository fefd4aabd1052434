package dmcrypt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// HeaderBytes is the size of the header before the encrypted content: two copies of the
// metadata, and the key slots. It is cryptsetup's default for LUKS2.
const HeaderBytes = 16 << 20

// Header describes an encrypted device, readable without its key.
type Header struct {
	UUID string
	// Label and Subsystem are for the owner of the device; at most 47 bytes.
	Label, Subsystem string
}

// Positions in the binary header ("LUKS2 On-Disk Format Specification", version 1.1.3,
// section 2.1).
const (
	magic       = "LUKS\xba\xbe"
	versionAt   = 6
	labelAt     = 24
	uuidAt      = 168
	subsystemAt = 208
	labelBytes  = 48
	uuidBytes   = 40

	sectorBytes = 512 // what a disk writes at once; all of the above is in the first
)

// Decode returns the header at the start of a device; ok is false if there is none of
// LUKS2. It does not check whether the rest of the header is intact.
func Decode(head []byte) (h Header, ok bool) {
	if len(head) < sectorBytes || !bytes.HasPrefix(head, []byte(magic)) || binary.BigEndian.Uint16(head[versionAt:]) != 2 {
		return h, false
	}
	text := func(at, n int) string {
		s, _, _ := bytes.Cut(head[at:at+n], []byte{0})
		return string(s)
	}
	return Header{UUID: text(uuidAt, uuidBytes), Label: text(labelAt, labelBytes), Subsystem: text(subsystemAt, labelBytes)}, true
}

// copyHeader writes a header to a device. The first sector is written first: from then
// on an interrupted copy is recognized by its UUID and label.
func copyHeader(header io.ReaderAt, path string) error {
	dev, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	size, err := dev.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size <= HeaderBytes {
		return fmt.Errorf("%s is too small to be encrypted: %d bytes, want more than %d", path, size, HeaderBytes)
	}
	b := make([]byte, HeaderBytes)
	if _, err := header.ReadAt(b, 0); err != nil {
		return fmt.Errorf("read the new header: %w", err)
	}
	for _, part := range []struct{ from, to int64 }{{0, sectorBytes}, {sectorBytes, HeaderBytes}} {
		if _, err := dev.WriteAt(b[part.from:part.to], part.from); err != nil {
			return err
		}
		if err := dev.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// shred overwrites the header of a device, except for the first 4 KiB, which identify
// it until the caller wipes the device (rawdisk.Wipe).
func shred(path string) error {
	dev, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	size, err := dev.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const first = 4 << 10
	if _, err := dev.WriteAt(make([]byte, max(0, min(size, HeaderBytes)-first)), first); err != nil {
		return err
	}
	return dev.Sync()
}
