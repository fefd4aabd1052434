package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// ReadInfo reads the header of a backup, and nothing else: RestoreInto checks the rest.
func ReadInfo(r io.Reader) (Info, error) {
	b := newReader(r)
	return b.info()
}

func badBackup(format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, "the backup cannot be used: "+format, args...).
		WithHint("it may be incomplete or damaged: fetch it again, or use another one")
}

// newerBackup returns the error for a version above this program's.
func newerBackup(what string, version, known int) *api.Error {
	return api.Errorf(api.CodeInvalid, "this backup was made by a newer Basalt: its %s has version %d, this program knows %d", what, version, known).
		WithHint("restore it with that version or a later one")
}

// reader reads an unchecked backup. Nothing of it is trusted before done has compared
// the checksum.
type reader struct {
	in    *bufio.Reader
	sum   hash.Hash
	read  int64 // bytes
	found ending
}

func newReader(r io.Reader) *reader {
	return &reader{in: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
}

// bytes reads n bytes into the sum. It allocates no more memory than there is data.
func (b *reader) bytes(n int64) ([]byte, error) {
	if b.read += n; b.read > maxBackup {
		return nil, badBackup("it is larger than %d bytes", int64(maxBackup))
	}
	var out bytes.Buffer
	if n <= 64<<10 {
		out.Grow(int(n))
	}
	if _, err := io.CopyN(io.MultiWriter(&out, b.sum), b.in, n); err != nil {
		return nil, b.broken(err)
	}
	return out.Bytes(), nil
}

// broken returns the error of an input that ended or failed.
func (b *reader) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return badBackup("it ends too early")
	}
	return fmt.Errorf("read the backup: %w", err)
}

func (b *reader) info() (info Info, err error) {
	head, err := b.bytes(16)
	if err != nil {
		return info, err
	}
	if string(head[:8]) != magic {
		return info, badBackup("it is not a backup of Basalt")
	}
	switch v := binary.LittleEndian.Uint32(head[8:]); {
	case v > formatVersion:
		return info, newerBackup("file", int(v), formatVersion)
	case v < formatVersion:
		return info, badBackup("version %d is not valid", v)
	}
	size := binary.LittleEndian.Uint32(head[12:])
	if size > maxInfo {
		return info, badBackup("its header of %d bytes is too long", size)
	}
	raw, err := b.bytes(int64(size))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return info, badBackup("its header cannot be read: %v", err)
	}
	switch {
	case info.Format > state.Level:
		return info, newerBackup("content", info.Format, state.Level)
	case info.Format < 1:
		return info, badBackup("its content has invalid version %d", info.Format)
	case info.Revision < 0 || info.Revision > maxRevision:
		return info, badBackup("its revision is %d", info.Revision)
	case !info.Horizon.IsZero() && (info.Horizon.Year() < 1970 || info.Horizon.Year() > 2200):
		return info, badBackup("it has usage records from %s on", info.Horizon)
	}
	return info, nil
}

// next returns the next record, or recordEnd after the last one, when everything was
// compared.
func (b *reader) next() (kind byte, raw []byte, err error) {
	if b.found.count() > maxCount {
		return 0, nil, badBackup("it has more than %d records", maxCount)
	}
	head, err := b.bytes(1)
	if err != nil {
		return 0, nil, err
	}
	size, err := binary.ReadUvarint(byteReader{b})
	if err != nil {
		return 0, nil, b.broken(err)
	}
	if size > maxRecord {
		return 0, nil, badBackup("a record of %d bytes is too long", size)
	}
	if raw, err = b.bytes(int64(size)); err != nil {
		return 0, nil, err
	}
	if head[0] == recordEnd {
		return recordEnd, nil, b.done(raw)
	}
	n := b.found.of(state.Section(head[0]))
	if n == nil {
		return 0, nil, badBackup("a record has the unknown kind %q", head[0])
	}
	*n++
	return head[0], raw, nil
}

// done compares the content with the end record and the checksum.
func (b *reader) done(raw []byte) error {
	var end ending
	if err := json.Unmarshal(raw, &end); err != nil {
		return badBackup("its end cannot be read: %v", err)
	}
	if end != b.found {
		return badBackup("it has %+v, want %+v", b.found, end)
	}
	want := b.sum.Sum(nil)
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(b.in, got); err != nil {
		return b.broken(err)
	}
	if !bytes.Equal(got, want) {
		return badBackup("its checksum is wrong")
	}
	if _, err := b.in.ReadByte(); !errors.Is(err, io.EOF) {
		return badBackup("it has data after its end")
	}
	return nil
}

// byteReader reads the bytes of a number, and adds them to the sum.
type byteReader struct{ b *reader }

func (r byteReader) ReadByte() (byte, error) {
	raw, err := r.b.in.ReadByte()
	if err == nil {
		r.b.read++
		_, _ = r.b.sum.Write([]byte{raw}) // never fails
	}
	return raw, err
}
