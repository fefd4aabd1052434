package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// Neither bbolt nor Raft would detect that a byte of an entry has changed on the disk:
// this node would apply something different from the others, or send it to them. So
// each entry is stored with a checksum, in the field that Raft leaves to its users. It
// is local to this node: entries are sent to others without it.

var logSumMark = []byte("sum1") // followed by the checksum

// logSum returns the checksum of everything that matters in an entry.
func logSum(l *raft.Log) uint32 {
	head := binary.BigEndian.AppendUint64(nil, l.Index)
	head = binary.BigEndian.AppendUint64(head, l.Term)
	head = append(head, byte(l.Type))
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, l.Data)
}

// withSums returns copies of the entries with their checksums.
func withSums(entries []*raft.Log) []*raft.Log {
	out := make([]*raft.Log, len(entries))
	for i, e := range entries {
		summed := *e
		summed.Extensions = binary.BigEndian.AppendUint32(bytes.Clone(logSumMark), logSum(e))
		out[i] = &summed
	}
	return out
}

// checkSum removes an entry's checksum, or returns an error if the entry is damaged.
// Entries of releases without checksums have none.
func checkSum(index uint64, l *raft.Log) error {
	if l.Index != index {
		return fmt.Errorf("entry %d claims to be entry %d", index, l.Index)
	}
	if l.Extensions == nil {
		return nil
	}
	sum, ok := bytes.CutPrefix(l.Extensions, logSumMark)
	if !ok || len(sum) != 4 || binary.BigEndian.Uint32(sum) != logSum(l) {
		return fmt.Errorf("entry %d has changed since it was written", index)
	}
	l.Extensions = nil
	return nil
}
