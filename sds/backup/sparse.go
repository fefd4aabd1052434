package backup

import (
	"bytes"
	"fmt"
	"io"
)

const holeBytes = 64 << 10

var zeros [holeBytes]byte

// sparse writes to a file that is all zeros, skipping zeros.
type sparse struct {
	f        io.WriterAt
	size, at int64
	dense    bool // zeros are written too
	progress func(Progress)
	told     int64
	err      error
}

// Write implements io.Writer.
func (s *sparse) Write(p []byte) (n int, err error) {
	if int64(len(p)) > s.size-s.at {
		s.err = fmt.Errorf("the backup contains more than the expected %d bytes", s.size)
		return 0, s.err
	}
	for n < len(p) {
		// Align the blocks with those of the disk.
		end := min(len(p), n+int(holeBytes-s.at%holeBytes))
		block := p[n:end]
		if s.dense || !bytes.Equal(block, zeros[:len(block)]) {
			if _, s.err = s.f.WriteAt(block, s.at); s.err != nil {
				return n, s.err
			}
		}
		s.at += int64(len(block))
		n = end
	}
	if s.progress != nil && (s.at == s.size || s.at-s.told >= 64<<20) {
		s.told = s.at
		s.progress(Progress{s.at, s.size})
	}
	return n, nil
}
