package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ReadDisks returns the disks of this machine. See ParseDisks for ignoreBelow.
func ReadDisks(ctx context.Context, ignoreBelow string) ([]Disk, error) {
	out, err := exec.CommandContext(ctx, "lsblk", LsblkArgs...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("machine: lsblk: %w", err)
	}
	return ParseDisks(out, byID("/dev/disk/by-id"), ignoreBelow)
}

// byID maps devices to their names in dir.
func byID(dir string) map[string][]string {
	names := map[string][]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return names // without udev, disks have no such names
	}
	for _, e := range entries {
		if to, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name())); err == nil {
			names[to] = append(names[to], e.Name())
		}
	}
	return names
}

// ReadNICs returns the network cards of this machine.
func ReadNICs() ([]NIC, error) { return ParseNICs(os.DirFS("/sys")) }

// LinksUp brings the cards up, since a card that is down reports no link.
func LinksUp(ctx context.Context) {
	nics, err := ReadNICs()
	if err != nil {
		return
	}
	for _, n := range nics {
		// A card that cannot be brought up is shown as not connected.
		_ = exec.CommandContext(ctx, "ip", "link", "set", n.Name, "up").Run()
	}
}
