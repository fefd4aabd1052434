package agent

import (
	"context"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// domainBuilder builds the hypervisor's descriptions of instances' machines, and
// prepares what they need.
type domainBuilder struct {
	*core
	disks       *diskSet
	ports       *portSet
	vgpus       *vgpuSlices
	accelerator *acceleration
	pins        *cpuPins
	media       *mediaSet
}

// build returns the domain that the instance's assignment asks for, with its root
// volume and the attached volumes. It plugs the instance's ports and starts its
// vGPU.
func (b *domainBuilder) build(ctx context.Context, in api.Instance, attached []api.Volume) (hypervisor.Domain, []disk, error) {
	v, ok := get(b.cache, b.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return hypervisor.Domain{}, nil, errStale
	}
	var disks []disk
	for _, v := range append([]api.Volume{v}, attached...) {
		k, err := b.disks.find(ctx, v)
		if err != nil {
			return hypervisor.Domain{}, nil, err
		}
		disks = append(disks, k)
	}
	nics, err := b.ports.plug(ctx, in, false)
	if err != nil {
		return hypervisor.Domain{}, nil, err
	}
	d, err := b.buildOn(ctx, in, disks, nics)
	return d, disks, err
}

// buildOn returns the domain with the given disks and network cards.
func (b *domainBuilder) buildOn(ctx context.Context, in api.Instance, disks []disk, nics []hypervisor.NIC) (hypervisor.Domain, error) {
	id := api.InstanceID(in.Meta.ID)
	if err := os.MkdirAll(b.files.runDir(id), 0o755); err != nil {
		return hypervisor.Domain{}, err
	}
	d := hypervisor.Domain{
		ID: id, Node: b.o.NodeID, Name: in.Meta.Name,
		VCPUs: int(in.Assignment.Vcpus), MemoryBytes: in.Assignment.MemoryBytes, Accelerator: b.accelerator.how(),
		Machine:      in.Status.Machine.Type,
		HugePages:    in.Assignment.HugePages.Bytes(),
		NICs:         nics,
		CDROMs:       []hypervisor.CDROM{{Path: b.files.seedPath(id), Serial: "seed"}},
		SerialSocket: filepath.Join(b.files.runDir(id), "serial"), SerialLog: filepath.Join(b.files.dir(id), "console.log"),
		VNCSocket: filepath.Join(b.files.runDir(id), "vnc"),
	}
	if in.Spec.Firmware == api.FirmwareUEFI {
		d.Firmware, d.TPM = &hypervisor.Firmware{SecureBoot: in.Spec.SecureBoot, NVRAM: b.files.nvramPath(id)}, in.Spec.TPM
	}
	d.Windows = in.Spec.OS == api.OSWindows
	if c := in.Status.Machine.CPU; c.Class == api.CPUBaseline {
		cpu := hypervisor.CPUOf(c.CPU)
		d.CPU = &cpu
	}
	drives, waits, err := b.media.drives(ctx, in, key(api.KindInstance, in.Meta.ID))
	if err == nil && waits.Text != "" {
		err = api.Errorf(api.CodeUnavailable, "a medium of instance %s is not on this node: %s", id, waits.Text).Because(waits.Cause, "")
	}
	if err != nil {
		return hypervisor.Domain{}, err
	}
	d.Drives, d.BootMedium = drives, len(drives) > 0 && in.Spec.BootsMedium()
	if err := b.pins.place(&d, in); err != nil {
		return hypervisor.Domain{}, err
	}
	for _, k := range disks {
		d.Disks = append(d.Disks, k.Disk)
	}
	if b.o.ToolsDisc != "" {
		d.CDROMs = append(d.CDROMs, hypervisor.CDROM{Path: b.o.ToolsDisc, Serial: "tools"})
	}
	if in.Assignment.Gpu != "" {
		if d.VGPUSocket, err = b.vgpus.ensure(ctx, in); err != nil {
			return hypervisor.Domain{}, err
		}
	}
	return d, nil
}
