// Package qemuimg runs qemu-img in a process that is killed when this one
// ends: on files received from users, under limits, and on Basalt's own disks.
package qemuimg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/storagedaemon"
)

// Limits for qemu-img on files received from users: address space, CPU time,
// and the time until it is killed. 1 GiB suffices for the tables of any image
// that is accepted.
const (
	imgAddressSpace = "--as=1073741824"
	imgCPU          = "--cpu=120"
	imgTime         = 5 * time.Minute
	imgOutput       = 1 << 20
	maxCluster      = 2 << 20 // of qcow2
)

// Run runs qemu-img under the limits and returns its output.
func Run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, imgTime)
	defer cancel()
	return run(ctx, nil, []string{imgAddressSpace, imgCPU, "--core=0", "qemu-img"}, args)
}

// Own runs qemu-img on Basalt's own disks, without a time limit, with secret
// objects by ID.
func Own(ctx context.Context, secrets map[string][]byte, args ...string) ([]byte, error) {
	files, objects, err := storagedaemon.Secrets(secrets)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("pass secrets to qemu-img: %w", err)
	}
	// The verb comes first.
	return run(ctx, files, []string{"--core=0", "qemu-img"}, append(append([]string{args[0]}, objects...), args[1:]...))
}

// WrongKey reports whether qemu-img failed because a secret does not open a
// disk.
func WrongKey(err error) bool {
	var e *imgError
	return errors.As(err, &e) && strings.Contains(e.says, "Invalid password")
}

func run(ctx context.Context, files []*os.File, limits, args []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "prlimit", append(limits, args...)...)
	cmd.ExtraFiles = files
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	// It is killed when this process ends, whose locks end too. The kernel treats
	// the thread that started it as its parent, so the thread must not exit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, errs := &limited{left: imgOutput}, &limited{left: imgOutput}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit):
		return out.Bytes(), &imgError{args[0], strings.TrimSpace(errs.String()), exit}
	case err != nil:
		return nil, fmt.Errorf("qemu-img: %w", err)
	}
	return out.Bytes(), nil
}

// imgError is an error that qemu-img reported.
type imgError struct {
	verb, says string
	exit       *exec.ExitError
}

func (e *imgError) Error() string {
	return "qemu-img " + e.verb + ": " + e.says + ": " + e.exit.String()
}

// Unwrap returns the exit status.
func (e *imgError) Unwrap() error { return e.exit }

// limited stores the first bytes and drops the rest.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.left -= keep
	l.Buffer.Write(p[:keep])
	return len(p), nil
}

// Verify checks with qemu-img what sds.Inspect read from the header, and that
// the image's tables are valid. The format is always given: QEMU must never
// detect it from a user's file.
func Verify(ctx context.Context, disk string, format sds.Format, virtual int64) error {
	out, err := Run(ctx, "info", "--output=json", "-f", format.QEMU(), disk)
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
		return api.Errorf(api.CodeInvalid, "the image is %s with %d bytes, want %s with %d bytes", info.Format, info.VirtualSize, format, virtual)
	case info.Backing != "" || info.Specific.Data.DataFile != "":
		return api.Errorf(api.CodeInvalid, "the image refers to another file")
	case info.Encrypted:
		return api.Errorf(api.CodeInvalid, "the image is encrypted")
	}
	if format != sds.QCOW2 {
		return nil // nothing in it to check
	}
	return checkTables(ctx, disk)
}

// checkTables checks the tables of a qcow2 image with qemu-img.
func checkTables(ctx context.Context, disk string) error {
	out, err := Run(ctx, "check", "--output=json", "-f", "qcow2", disk)
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
	st, err := os.Stat(disk)
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
	return api.Errorf(api.CodeInvalid, "the image is damaged or truncated").WithHint("compare its SHA-256 with the publisher's")
}
