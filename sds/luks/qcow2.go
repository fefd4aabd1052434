package luks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// Offsets in the header of a qcow2 file (QEMU, docs/interop/qcow2.rst).
const (
	magicAt, versionAt, backingAt, clusterBitsAt = 0, 4, 8, 20
	cryptAt, refcountTableAt                     = 32, 48
	refcountOrderAt, headerLengthAt              = 96, 100
)

const (
	magic       = "QFI\xfb"
	clusterBits = 16 // qemu-img's default
	cluster     = 1 << clusterBits
	cryptLUKS   = 2
	// extension is the type of the header extension with the location of the LUKS
	// header: its type, the length of what follows, an offset and a length.
	extension, extensionBytes = 0x0537be77, 24
)

// EncryptQCOW2 encrypts an empty qcow2 file that was just created by qemu-img,
// in the same way as qemu-img itself: the LUKS header is in clusters at the
// end of the file.
func EncryptQCOW2(path string, passphrase []byte) (err error) {
	header, err := Header(passphrase)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	first := make([]byte, cluster)
	if _, err := f.ReadAt(first, 0); err != nil {
		return fmt.Errorf("encrypt %s: %w", path, err)
	}
	be := binary.BigEndian
	length := int(be.Uint32(first[headerLengthAt:]))
	if string(first[magicAt:versionAt]) != magic || be.Uint32(first[versionAt:]) != 3 || be.Uint32(first[clusterBitsAt:]) != clusterBits ||
		be.Uint32(first[cryptAt:]) != 0 || be.Uint32(first[refcountOrderAt:]) != 4 || length > cluster/2 {
		return fmt.Errorf("encrypt %s: not a qcow2 file in the layout that qemu-img creates", path)
	}
	at := (st.Size() + cluster - 1) / cluster * cluster
	count := int64(HeaderBytes+cluster-1) / cluster
	if err := refer(f, int64(be.Uint64(first[refcountTableAt:])), at/cluster, count); err != nil {
		return fmt.Errorf("encrypt %s: %w", path, err)
	}
	be.PutUint32(first[cryptAt:], cryptLUKS)
	if backing := be.Uint64(first[backingAt:]); backing != 0 {
		be.PutUint64(first[backingAt:], backing+extensionBytes)
	}
	copy(first[length+extensionBytes:], first[length:]) // the part that is cut off is unused
	be.PutUint32(first[length:], extension)
	be.PutUint32(first[length+4:], 16)
	be.PutUint64(first[length+8:], uint64(at))
	be.PutUint64(first[length+16:], HeaderBytes)
	_, err = f.WriteAt(first, 0)
	_, err2 := f.WriteAt(header, at)
	return errors.Join(err, err2, f.Truncate(at+count*cluster))
}

// refer counts one reference to each of count clusters, starting at first.
func refer(f *os.File, table, first, count int64) error {
	entry := make([]byte, 8)
	if _, err := f.ReadAt(entry, table); err != nil {
		return err
	}
	block := int64(binary.BigEndian.Uint64(entry))
	if first+count > cluster/2 || block == 0 { // two bytes per count
		return errors.New("its first refcount block does not cover the whole file")
	}
	counts := make([]byte, 2*count)
	for i := range count {
		binary.BigEndian.PutUint16(counts[2*i:], 1)
	}
	_, err := f.WriteAt(counts, block+2*first)
	return err
}
