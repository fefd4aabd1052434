package qemuimg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Verify checks with qemu-img what sds.Inspect read from the header, and that
// the image's tables are valid. The format is always given: QEMU must never
// detect it from a user's file.
func Verify(ctx context.Context, image *os.File, format sds.Format, virtual int64) error {
	out, err := inspect(ctx, image, "info", "--output=json", "-f", format.QEMU())
	if err != nil {
		return refused(err)
	}
	var info struct {
		Format      string `json:"format"`
		VirtualSize int64  `json:"virtual-size"`
		Backing     string `json:"backing-filename"`
		Encrypted   bool   `json:"encrypted"`
		Specific    struct {
			Data struct {
				DataFile string `json:"data-file"`
			} `json:"data"`
		} `json:"format-specific"`
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return fmt.Errorf("qemu-img info: %w", err)
	}
	switch {
	case info.Format != format.QEMU() || (info.VirtualSize+sds.Sector-1)/sds.Sector != (virtual+sds.Sector-1)/sds.Sector:
		return api.Errorf(api.CodeInvalid, "the image is %s with %d bytes, want %s with %d bytes", info.Format, info.VirtualSize, format, virtual).
			Because(api.Cause{Code: api.CauseImageFormat}, "")
	case info.Backing != "" || info.Specific.Data.DataFile != "":
		return api.Errorf(api.CodeInvalid, "the image refers to another file").Because(api.Cause{Code: api.CauseImageNeedsFile}, "")
	case info.Encrypted:
		return api.Errorf(api.CodeInvalid, "the image is encrypted").Because(api.Cause{Code: api.CauseImageEncrypted}, "")
	}
	if format != sds.QCOW2 {
		return nil // nothing in it to check
	}
	return checkTables(ctx, image)
}

// maxCluster is the size of qcow2's largest clusters, in bytes.
const maxCluster = 2 << 20

// checkTables checks the tables of a qcow2 image with qemu-img.
func checkTables(ctx context.Context, image *os.File) error {
	out, err := inspect(ctx, image, "check", "--output=json", "-f", "qcow2")
	// 0: valid; 3: only leaked clusters, which waste space and are harmless.
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		return refused(err)
	}
	var found struct {
		End int64 `json:"image-end-offset"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return fmt.Errorf("qemu-img check: %w", err)
	}
	st, err := image.Stat()
	if err != nil {
		return err
	}
	// Data beyond the end of the file reads as zeros, so that an incomplete
	// download looks valid. The last cluster may be incomplete.
	if found.End-st.Size() >= maxCluster {
		return damaged()
	}
	return nil
}

// refused returns the error for users when qemu-img rejects an image. Its own
// messages may contain the node's paths: they stay in the error chain, for the
// log.
func refused(err error) error {
	var e *imgError
	if !errors.As(err, &e) {
		return err
	}
	return errors.Join(damaged(), err)
}

func damaged() error {
	return api.Errorf(api.CodeInvalid, "the image is damaged or truncated").Because(api.Cause{Code: api.CauseImageDamaged}, "").WithHint("compare its SHA-256 with the publisher's")
}
