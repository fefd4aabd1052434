package qemuimg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/basalt-gpu/basalt/sds"
)

// Export runs f while a confined qemu-nbd exports the disk in a user's image: f copies it,
// in format raw, from the name that it is given, without parsing the image itself. dir is
// for the socket.
func Export(ctx context.Context, image, dir string, format sds.Format, f func(name string) error) error {
	disk, err := os.Open(image)
	if err != nil {
		return err
	}
	defer disk.Close()
	path := filepath.Join(dir, "nbd.sock")
	socket, err := listen(path)
	if err != nil {
		return fmt.Errorf("listen for the export of image %s: %w", image, err)
	}
	defer os.Remove(path)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The protocol of systemd's socket activation (sd_listen_fds(3)): the process' own ID is
	// known only in it.
	cmd := confined(ctx, []*os.File{socket, disk}, []string{maxAddresses}, "sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh",
		"qemu-nbd", "--read-only", "--persistent", "--format="+format.QEMU(), "/dev/fd/4")
	cmd.Env = []string{"LISTEN_FDS=1"}
	prepare(cmd)
	errs := &limited{left: maxOutput}
	cmd.Stderr = errs
	runtime.LockOSThread() // see prepare
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	_ = socket.Close() // when the program ends, so do connections
	if err != nil {
		return fmt.Errorf("qemu-nbd: %w", err)
	}
	err = f("nbd+unix:///?socket=" + url.QueryEscape(path))
	cancel()
	_ = cmd.Wait() // it was killed
	if says := strings.TrimSpace(errs.String()); err != nil && says != "" {
		err = errors.Join(err, fmt.Errorf("qemu-nbd: %s", says))
	}
	return err
}

// listen returns a socket that listens at a path.
func listen(path string) (*os.File, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	return l.File()
}
