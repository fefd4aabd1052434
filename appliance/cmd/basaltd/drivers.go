package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/capability"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/hypervisor/libvirt"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/local"
)

// openPools opens the node's storage pools, by name.
func openPools(ctx context.Context, c config, reserve int64, urls outbound.Options) (map[string]sds.Driver, error) {
	o := local.Options{Dir: filepath.Join(c.data, "storage"), ReserveBytes: reserve, URLs: urls}
	own, err := local.Open(o)
	if err != nil {
		return nil, fmt.Errorf("open the storage in %s: %w", o.Dir, err)
	}
	pools := map[string]sds.Driver{api.PoolLocal: own}
	if c.sharedDir == "" {
		return pools, nil
	}
	dir, err := mountShared(ctx, c)
	if err != nil {
		return pools, fmt.Errorf("--shared-dir: %w", err)
	}
	o.ReserveBytes = minStorageReserve // the file system is not one node's own
	o.Dir, o.Shared, o.Remember = dir, true, filepath.Join(c.data, "shared-pool")
	shared, err := local.Open(o)
	if err != nil {
		return pools, fmt.Errorf("--shared-dir: %w", err)
	}
	pools[api.PoolShared] = shared
	return pools, nil
}

// hypervisors are the values of --libvirt besides libvirt's own; see drivers_fake.go.
var hypervisors = map[string]func() hypervisor.Driver{}

func logAccelerator(log *slog.Logger, how capability.Result) {
	switch {
	case how.Why == "":
		log.Info("guests use KVM")
	case how.AskAgain.IsZero():
		log.Info("guests do not use KVM", "accelerator", how.Accelerator, "why", how.Why)
	default:
		log.Info("guests do not use KVM, checking again later", "accelerator", how.Accelerator, "why", how.Why, "at", how.AskAgain)
	}
}

// probeAgain is the delay before the next probe after one in which no guest started at all, for
// example because QEMU is not installed.
const probeAgain = 15 * time.Second

// watchAccelerator finds out whether guests can use KVM, which may take minutes and needs QEMU.
// Only the start of guests waits for it. While KVM gives no answer, the probe is repeated. It
// does nothing with a fake hypervisor.
func (n *node) watchAccelerator(ctx context.Context) error {
	if n.probed == "" {
		return nil
	}
	logged := ""
	for {
		how, err := capability.Accelerator(ctx, n.probed)
		if err == nil {
			n.setAccelerator(how)
			err = capability.Watch(ctx, n.probed, how, n.setAccelerator)
			if err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if how.Accelerator == "" {
			n.agent.NoAccelerator(err)
		}
		if logged != err.Error() {
			logged = err.Error()
			n.log.Error("find out whether guests can use KVM failed, retrying", "error", err)
		}
		sleep(ctx, probeAgain)
	}
}

func (n *node) setAccelerator(how capability.Result) {
	logAccelerator(n.log, how)
	n.agent.SetAccelerator(how.Accelerator)
}

// openMachines opens the hypervisor. libvirt need not be running yet.
func (n *node) openMachines(ctx context.Context, c config, id api.NodeID) error {
	log := n.log
	if pretended := hypervisors[c.libvirt]; pretended != nil {
		n.machines, n.accelerator = pretended(), hypervisor.TCG
		n.closers = append(n.closers, n.machines.Close)
		return nil
	}
	d, err := libvirt.Open(ctx, libvirt.Options{URI: c.libvirt, Node: id, MigrationDir: filepath.Join(c.run, "migrate"), Logf: func(f string, args ...any) { log.Info(fmt.Sprintf(f, args...)) }})
	if err != nil {
		return fmt.Errorf("connect to libvirt at %s: %w", c.libvirt, err)
	}
	n.machines = d
	n.closers = append(n.closers, d.Close)
	if !libvirt.RunsQEMU(c.libvirt) {
		n.accelerator = hypervisor.TCG
		return nil
	}
	n.probed = filepath.Join(c.data, "accelerator.json")
	n.accelerator = capability.Cached(n.probed)
	return nil
}

// toolsDisc creates the disc from which guests install the guest tools.
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
	disc, err := cloudinit.WriteTools(dir, os.DirFS(c.guestTools))
	if err != nil {
		return "", fmt.Errorf("write the disc of the guest tools in %s: %w", c.guestTools, err)
	}
	return disc, nil
}
