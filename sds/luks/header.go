// Package luks creates headers of encrypted disks in QEMU's form, LUKS version
// 1 with AES-256 in XTS mode ("LUKS On-Disk Format Specification", version
// 1.2.3). qemu-img creates the same, but always measures the processor for two
// seconds first, to stretch a passphrase. Stretching is unnecessary: the
// passphrases of volumes are random.
package luks

import (
	"crypto/aes"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/xts"
)

const (
	sector = 512
	// HeaderBytes is the size of the header before the content. It has space for
	// all eight key slots, each aligned to a page.
	HeaderBytes = (slotStart + slots*slotSectors) * sector

	slots       = 8
	stripes     = 4000
	slotStart   = 8 // sector
	slotSectors = (keyBytes*stripes/sector + slotStart - 1) / slotStart * slotStart
	keyBytes    = 64 // two keys of AES-256: XTS
	saltBytes   = 32
	digestBytes = 20
	// iterations is the minimum that PKCS #5 and cryptsetup allow.
	iterations = 1000

	enabled, disabled = 0x00AC71F3, 0x0000DEAD
)

// Header returns the first HeaderBytes of a new disk with the passphrase. Its
// key is new and random.
func Header(passphrase []byte) ([]byte, error) {
	var key, slotSalt, digestSalt = random(keyBytes), random(saltBytes), random(saltBytes)
	digest, err := pbkdf2.Key(sha256.New, string(key), digestSalt, iterations, digestBytes)
	if err != nil {
		return nil, fmt.Errorf("compute digest of LUKS key: %w", err)
	}
	wrapping, err := pbkdf2.Key(sha256.New, string(passphrase), slotSalt, iterations, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("derive key from LUKS passphrase: %w", err)
	}
	header := make([]byte, HeaderBytes)
	w := writer{header}
	w.bytes(6, []byte("LUKS\xba\xbe"))
	w.uint16(1)
	w.bytes(32, []byte("aes"))
	w.bytes(32, []byte("xts-plain64"))
	w.bytes(32, []byte("sha256"))
	w.uint32(HeaderBytes / sector)
	w.uint32(keyBytes)
	w.bytes(digestBytes, digest)
	w.bytes(saltBytes, digestSalt)
	w.uint32(iterations)
	w.bytes(40, uuid())
	for i := range uint32(slots) {
		if i == 0 {
			w.uint32(enabled)
			w.uint32(iterations)
			w.bytes(saltBytes, slotSalt)
		} else {
			w.uint32(disabled)
			w.uint32(0)
			w.bytes(saltBytes, nil)
		}
		w.uint32(slotStart + i*slotSectors)
		w.uint32(stripes)
	}
	return header, wrap(header[slotStart*sector:], split(key), wrapping)
}

// writer writes a header field by field.
type writer struct{ left []byte }

func (w *writer) bytes(n int, b []byte) {
	copy(w.left[:n], b)
	w.left = w.left[n:]
}

func (w *writer) uint16(v uint16) { w.bytes(2, binary.BigEndian.AppendUint16(nil, v)) }
func (w *writer) uint32(v uint32) { w.bytes(4, binary.BigEndian.AppendUint32(nil, v)) }

// split spreads a key over stripes, all of which are needed to recover it: the
// remains of an overwritten slot do not reveal it (section 2.4, AFsplit).
func split(key []byte) []byte {
	all := random(stripes * len(key))
	sum := make([]byte, len(key))
	last := (stripes - 1) * len(key)
	for at := 0; at < last; at += len(key) {
		subtle.XORBytes(sum, sum, all[at:at+len(key)])
		diffuse(sum)
	}
	subtle.XORBytes(all[last:], sum, key)
	return all
}

// diffuse replaces each piece of a block by a hash of its number and content.
func diffuse(block []byte) {
	for i := 0; i*sha256.Size < len(block); i++ {
		piece := block[i*sha256.Size : min((i+1)*sha256.Size, len(block))]
		hash := sha256.Sum256(append(binary.BigEndian.AppendUint32(nil, uint32(i)), piece...))
		copy(piece, hash[:])
	}
}

// wrap encrypts a slot's stripes like the disk's sectors, with the key derived
// from the passphrase and sector numbers starting at the slot.
func wrap(to, material, key []byte) error {
	c, err := xts.NewCipher(aes.NewCipher, key)
	if err != nil {
		return fmt.Errorf("create cipher of LUKS key slot: %w", err)
	}
	for at := 0; at < len(material); at += sector {
		c.Encrypt(to[at:at+sector], material[at:at+sector], uint64(at/sector))
	}
	return nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// uuid returns a UUID of version 4 (RFC 9562).
func uuid() []byte {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Appendf(nil, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
