package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/nfs"
)

// mountShared returns the directory of the pool shared. An export of an NFS server is mounted
// first.
func mountShared(ctx context.Context, c config) (string, error) {
	if !strings.HasPrefix(c.sharedDir, nfs.Scheme) {
		return c.sharedDir, nil
	}
	e, err := nfs.Parse(c.sharedDir)
	if err != nil {
		return "", fmt.Errorf("shared directory %s: %w", c.sharedDir, err)
	}
	dir, err := filepath.Abs(filepath.Join(c.data, "shared"))
	if err != nil {
		return "", err
	}
	_, err = os.Stat("/run/systemd/system") // as sd_booted(3) checks
	if err := nfs.Mount(ctx, nfs.System{Command: runProgram, Mounts: readMounts, Systemd: err == nil}, e, dir); err != nil {
		return dir, fmt.Errorf("shared directory %s: %w", dir, err)
	}
	return dir, nil
}

func readMounts() (string, error) {
	raw, err := os.ReadFile("/proc/self/mounts")
	return string(raw), err
}

// runProgram runs a program; the error includes its output.
func runProgram(ctx context.Context, argv ...string) error {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
