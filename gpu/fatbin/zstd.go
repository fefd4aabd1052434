package fatbin

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// unzstd decompresses one payload (RFC 8878) of exactly size bytes.
func unzstd(src []byte, size int) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out, err := d.DecodeAll(src, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("%w: decode Zstandard frame: %w", ErrMalformed, err)
	}
	if len(out) != size {
		return nil, fmt.Errorf("%w: Zstandard frame has %d bytes, want %d as in its header", ErrMalformed, len(out), size)
	}
	return out, nil
}
