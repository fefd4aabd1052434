// Package imagefile receives the file of an image: from a URL or a stream,
// with limits, computing its hash, and checked before any other program reads
// it. Drivers decide where to store it.
package imagefile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

// Receiver receives images.
type Receiver struct {
	Limits sds.Limits // with defaults
	// Room returns insufficient_disk if want more bytes do not fit where the file
	// is stored.
	Room func(ctx context.Context, want int64) error
	// AllowFileURL and URLs: see the drivers' options.
	AllowFileURL bool
	URLs         outbound.Options
}

// Received describes the received file.
type Received struct {
	SHA256       string // hex
	SizeBytes    int64  // of the file
	VirtualBytes int64  // of the disk in it
}

// Receive writes the source to a new file and checks it. size is -1 if the
// source's size is unknown.
func (r Receiver) Receive(ctx context.Context, in sds.ImageImport, source io.Reader, size int64, disk string) (Received, error) {
	if size > r.Limits.MaxImageBytes {
		return Received{}, r.tooLarge()
	}
	if err := r.Room(ctx, max(size, 0)); err != nil {
		return Received{}, err
	}
	f, err := os.OpenFile(disk, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return Received{}, err
	}
	defer f.Close()
	// The program that verifies it has no rights, whatever this process' umask is.
	if err := f.Chmod(0o644); err != nil {
		return Received{}, err
	}
	into := f
	if reflink(f, source) {
		source, into = f, nil // only to be read
	}
	buffered := bufio.NewReaderSize(source, sds.HeadBytes)
	head, err := buffered.Peek(sds.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return Received{}, err
	}
	head = bytes.Clone(head) // Peek's bytes are only valid until the next read
	hash := sha256.New()
	got, err := r.copy(ctx, into, io.TeeReader(buffered, hash), in.Progress)
	switch {
	case err != nil:
		return Received{}, err
	case size >= 0 && got != size:
		return Received{}, api.Errorf(api.CodeUnavailable, "the image source ended after %d of %d bytes", got, size).Because(api.Cause{Code: api.CauseIncomplete}, "").WithHint("try again")
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if in.SHA256 != "" && !strings.EqualFold(in.SHA256, sum) {
		return Received{}, api.Errorf(api.CodeInvalid, "the image has SHA-256 %s, want %s", sum, strings.ToLower(in.SHA256)).Because(api.Cause{Code: api.CauseChecksum}, "").At("spec.sha256")
	}
	virtual, err := sds.Inspect(head, got, in.Format)
	if err != nil {
		return Received{}, err
	}
	if virtual > r.Limits.MaxVirtualBytes {
		return Received{}, api.Errorf(api.CodeTooLarge, "the image's disk has %d bytes, want at most %d", virtual, r.Limits.MaxVirtualBytes).
			Because(api.Cause{Code: api.CauseImageTooLarge, Bytes: r.Limits.MaxVirtualBytes}, "")
	}
	if err := qemuimg.Verify(ctx, f, in.Format, virtual); err != nil {
		return Received{}, fmt.Errorf("verify the content of image %s: %w", in.ID, err)
	}
	return Received{SHA256: sum, SizeBytes: got, VirtualBytes: virtual}, nil
}

const (
	copyBlock     = 256 << 10
	progressEvery = 250 * time.Millisecond
	roomEvery     = 64 << 20 // bytes between two checks of the free space
)

var zeros [copyBlock]byte

// copy writes src to f (nil: discards it), leaving holes for zeros, and
// returns its length.
func (r Receiver) copy(ctx context.Context, f *os.File, src io.Reader, progress func(int64)) (int64, error) {
	var at, looked int64
	var told time.Time
	block := make([]byte, copyBlock)
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := io.ReadFull(src, block)
		if int64(n) > r.Limits.MaxImageBytes-at {
			return 0, r.tooLarge()
		}
		if f != nil && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WriteAt(block[:n], at); err != nil {
				return 0, err
			}
		}
		at += int64(n)
		if at-looked >= roomEvery {
			looked = at
			if err := r.Room(ctx, 0); err != nil {
				return 0, err
			}
		}
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if progress != nil && (end || time.Since(told) >= progressEvery) {
			told = time.Now()
			progress(at)
		}
		switch {
		case end && f == nil:
			return at, nil
		case end:
			return at, f.Truncate(at)
		case err != nil:
			return 0, err
		}
	}
}

func (r Receiver) tooLarge() error {
	return api.Errorf(api.CodeTooLarge, "the image is larger than %d bytes", r.Limits.MaxImageBytes).
		Because(api.Cause{Code: api.CauseImageTooLarge, Bytes: r.Limits.MaxImageBytes}, "")
}
