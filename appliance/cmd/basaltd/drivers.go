package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/hypervisor/libvirt"
	"github.com/basalt-gpu/basalt/hypervisor/probe"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/local"
)

// openPools opens the node's storage pools, by name.
func openPools(c config) (map[string]sds.Driver, error) {
	o := local.Options{Dir: filepath.Join(c.data, "storage"), ReserveBytes: 256 << 20, AllowPrivateURL: c.privateImages}
	own, err := local.Open(o)
	if err != nil {
		return nil, err
	}
	pools := map[string]sds.Driver{api.PoolLocal: own}
	if c.sharedDir == "" {
		return pools, nil
	}
	o.Dir, o.Shared, o.Remember = c.sharedDir, true, filepath.Join(c.data, "shared-pool")
	shared, err := local.Open(o)
	if err != nil {
		return pools, fmt.Errorf("--shared-dir: %w", err)
	}
	pools[api.PoolShared] = shared
	return pools, nil
}

func openMachines(ctx context.Context, c config, id api.NodeID, log *slog.Logger) (hypervisor.Driver, hypervisor.Accelerator, error) {
	how, err := probe.Accelerator(ctx, filepath.Join(c.data, "accelerator.json"))
	if err != nil {
		return nil, "", err
	}
	if how.Why != "" {
		log.Info("guests run without KVM", "accelerator", how.Accelerator, "why", how.Why)
	}
	d, err := libvirt.Open(ctx, libvirt.Options{URI: c.libvirt, Node: id, MigrationDir: filepath.Join(c.run, "migrate"), Logf: func(f string, args ...any) { log.Info(fmt.Sprintf(f, args...)) }})
	if err != nil {
		return nil, "", err
	}
	return d, how.Accelerator, nil
}

// toolsDisc makes the disc from which guests install the guest tools.
func toolsDisc(c config) (string, error) {
	if c.guestTools == "" {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(c.guestTools, "install.sh")); err != nil {
		return "", fmt.Errorf("--guest-tools: %w", err)
	}
	dir := filepath.Join(c.data, "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return cloudinit.WriteTools(dir, os.DirFS(c.guestTools))
}
