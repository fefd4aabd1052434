package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Disks returns the disks of this node. Loop devices over files that match one of
// the patterns count as disks; that is for tests.
func Disks(ctx context.Context, node api.NodeID, loops []string) ([]Block, error) {
	raw, err := command.Exec(ctx, command.Exe{
		Program: "lsblk", Args: []string{"--json", "--bytes", "--output", "NAME,PATH,TYPE,SIZE,RO,ROTA,RM,MODEL,SERIAL,WWN,FSTYPE,PTTYPE,MOUNTPOINTS"},
		Verb: "--json", Timeout: time.Minute,
	})
	if err != nil {
		return nil, fmt.Errorf("list block devices: %w", err)
	}
	all, err := parseDevices(raw)
	if err != nil {
		return nil, err
	}
	in := surroundings{Node: node, Links: map[string][]string{}, Backing: map[string]string{}, Loops: loops}
	for _, dir := range []string{"/dev/disk/by-id", "/dev/disk/by-path"} {
		if err := links(dir, in.Links); err != nil {
			return nil, err
		}
	}
	if len(loops) > 0 {
		for _, d := range all {
			file, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.Path), "loop/backing_file"))
			if err == nil { // it is a loop device with a backing file
				in.Backing[d.Name] = strings.TrimSuffix(string(file), "\n")
			}
		}
	}
	return blocks(all, in), nil
}

// Probe describes what is on a disk, or returns "" if it is blank.
func Probe(ctx context.Context, path string) (string, error) {
	f, err := deploy.Probe(ctx, "", path)
	if err != nil {
		return "", fmt.Errorf("probe disk %s: %w", path, err)
	}
	switch f.Content {
	case deploy.Blank:
		return "", nil
	case deploy.OSD, deploy.Begun:
		return "it contains an OSD", nil
	}
	return storage.Line(f.What), nil
}

func links(dir string, into map[string][]string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a machine without udev
	}
	if err != nil {
		return fmt.Errorf("read names of disks: %w", err)
	}
	for _, e := range entries {
		link := filepath.Join(dir, e.Name())
		if path, err := filepath.EvalSymlinks(link); err == nil { // otherwise it was removed meanwhile
			into[path] = append(into[path], link)
		}
	}
	return nil
}
