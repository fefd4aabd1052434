package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/hypervisor/libvirt"
	"github.com/basalt-gpu/basalt/hypervisor/probe"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/local"
)

// openPools opens the node's storage pools, by name.
func openPools(c config, urls outbound.Options) (map[string]sds.Driver, error) {
	o := local.Options{Dir: filepath.Join(c.data, "storage"), ReserveBytes: 256 << 20, URLs: urls}
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

// hypervisors that --libvirt may name besides libvirt's own; see drivers_fake.go.
var hypervisors = map[string]func() hypervisor.Driver{}

func sayAccelerator(log *slog.Logger, how probe.Result) {
	switch {
	case how.Why == "":
		log.Info("guests run with KVM")
	case how.AskAgain.IsZero():
		log.Info("guests run without KVM", "accelerator", how.Accelerator, "why", how.Why)
	default:
		log.Info("guests run without KVM, which is tried again", "accelerator", how.Accelerator, "why", how.Why, "at", how.AskAgain)
	}
}

// watchAccelerator tries KVM again where it gave no answer.
func (n *node) watchAccelerator(ctx context.Context) error {
	err := probe.Watch(ctx, n.probed, n.how, func(how probe.Result) {
		sayAccelerator(n.log, how)
		n.agent.SetAccelerator(how.Accelerator)
	})
	if err != nil && ctx.Err() == nil {
		n.log.Warn("KVM is not tried again", "error", err)
	}
	return nil
}

// openMachines finds out how guests run, and opens libvirt.
func (n *node) openMachines(ctx context.Context, c config, id api.NodeID) (err error) {
	n.probed = filepath.Join(c.data, "accelerator.json")
	if n.how, err = probe.Accelerator(ctx, n.probed); err != nil {
		return err
	}
	log := n.log
	sayAccelerator(log, n.how)
	if pretended := hypervisors[c.libvirt]; pretended != nil {
		n.machines = pretended()
		n.closers = append(n.closers, n.machines.Close)
		return nil
	}
	d, err := libvirt.Open(ctx, libvirt.Options{URI: c.libvirt, Node: id, MigrationDir: filepath.Join(c.run, "migrate"), Logf: func(f string, args ...any) { log.Info(fmt.Sprintf(f, args...)) }})
	if err != nil {
		return err
	}
	n.machines = d
	n.closers = append(n.closers, d.Close)
	return nil
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
