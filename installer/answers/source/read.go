package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// Read reads the answer file. If the source was not named and does not exist, the error
// is fs.ErrNotExist. dir is a temporary mount point for its medium.
func Read(ctx context.Context, s Source, dir string) ([]byte, error) {
	if s.URL != "" {
		return fetch(ctx, s)
	}
	wait := 2 * time.Second
	if s.Named {
		wait = 30 * time.Second // USB sticks need time to appear
	}
	if err := await(ctx, s.Device, wait); err != nil {
		if s.Named {
			return nil, unreadable(s, err)
		}
		return nil, err
	}
	data, err := readMedium(ctx, s, dir)
	if err != nil {
		return nil, unreadable(s, err)
	}
	return checked(s, data)
}

func checked(s Source, data []byte) ([]byte, error) {
	if len(data) > strictyaml.MaxBytes {
		return nil, tooLarge(s)
	}
	return data, nil
}

func await(ctx context.Context, device string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(device)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// readMedium mounts the device, reads the file, and unmounts the device.
func readMedium(ctx context.Context, s Source, dir string) (_ []byte, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "mount", "-o", "ro,nosuid,nodev,noexec", s.Device, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mount: %w: %s", err, strings.TrimSpace(string(out)))
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH)) }()
	return readIn(dir, s.Path)
}

// readIn reads a file in a directory; links cannot lead out of it.
func readIn(dir, name string) (_ []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
	return data, errors.Join(err, f.Close())
}

// fetch fetches the file by HTTP, with five attempts, since the network has only just
// come up.
func fetch(ctx context.Context, s Source) ([]byte, error) {
	client := &http.Client{Timeout: 30 * time.Second}
	var last error
	for range 5 {
		data, err := get(ctx, client, s)
		if err == nil {
			return checked(s, data)
		}
		last = err
		select {
		case <-ctx.Done():
			return nil, unreadable(s, ctx.Err())
		case <-time.After(2 * time.Second):
		}
	}
	return nil, last
}

func get(ctx context.Context, client *http.Client, s Source) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, unreadable(s, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, unreadable(s, err)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, strictyaml.MaxBytes+1))
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, notOK(s, resp.Status)
	case err != nil:
		return nil, unreadable(s, err)
	}
	return data, nil
}
