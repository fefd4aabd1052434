package xfsdisk

import (
	"bytes"
	"encoding/hex"
)

// Offsets of the fields that are used in an XFS superblock, the first sector
// of the disk (fs/xfs/libxfs/xfs_format.h, struct xfs_dsb).
const (
	sbMagic      = "XFSB"
	sbUUID       = 32 // 16 bytes
	sbInProgress = 126
	sbBytes      = 512
)

// superblock are the fields of an XFS superblock that are used.
type superblock struct {
	uuid UUID
	// inProgress means that mkfs.xfs has started and not ended, so that nothing
	// was stored yet.
	inProgress bool
}

// decode decodes the first sector of a disk; false: it is not an XFS
// superblock.
func decode(raw []byte) (superblock, bool) {
	if len(raw) < sbBytes || !bytes.HasPrefix(raw, []byte(sbMagic)) {
		return superblock{}, false
	}
	return superblock{uuid: UUID(raw[sbUUID : sbUUID+16]), inProgress: raw[sbInProgress] != 0}, true
}

// UUID identifies a file system.
type UUID [16]byte

// String returns it in the form that mkfs.xfs and blkid use.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
