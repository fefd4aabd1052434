package hypervisor

import (
	"fmt"
	"slices"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// maxBandwidth is more than any network provides, and within QEMU's range.
const maxBandwidth = 1 << 40

// CheckMovable returns why the machine cannot be migrated: an *api.Error, or
// nil.
func (d Domain) CheckMovable() error {
	if err := d.Validate(); err != nil {
		return err
	}
	if d.VGPUSocket != "" {
		return vgpuStays(d.ID)
	}
	return nil
}

func vgpuStays(id api.InstanceID) error {
	return api.Errorf(api.CodeState, "instance %s has a vGPU and cannot be live-migrated", id).
		WithHint("stop it, move it and start it again")
}

// Check returns what is wrong with the options for a migration of id: an
// *api.Error, or nil.
func (o MigrateOptions) Check(id api.InstanceID) error {
	if err := o.Target.CheckMovable(); err != nil {
		return err
	}
	switch {
	case o.Target.ID != id:
		return invalid("target", "target has instance ID %s, want %s", o.Target.ID, id)
	case o.Tunnel == nil:
		return invalid("tunnel", "missing")
	case o.BandwidthBytesPerSecond < 0 || o.BandwidthBytesPerSecond > maxBandwidth:
		return invalid("bandwidthBytesPerSecond", "%d is out of range, want 0 to %d", o.BandwidthBytesPerSecond, int64(maxBandwidth))
	case o.MaxDowntime < 0 || o.MaxDowntime.Milliseconds() > 2_000_000: // QEMU's limit, MAX_MIGRATE_DOWNTIME
		return invalid("maxDowntime", "%s is out of range, want 0 to 2000 s", o.MaxDowntime)
	}
	return o.checkCopies()
}

// checkCopies checks that each entry of CopyDisks is one of the target's disks
// that are files, once.
func (o MigrateOptions) checkCopies() error {
	left := map[string]bool{}
	for _, k := range o.Target.Disks {
		left[k.Serial] = k.RBD == nil
	}
	for _, serial := range o.CopyDisks {
		if serial == "" || !left[serial] {
			return invalid("copyDisks", "want exactly one disk file with serial %q", serial)
		}
		left[serial] = false
	}
	return nil
}

// Retarget returns the XML of a running machine with everything replaced that
// differs on the target: paths, host devices, and the node it belongs to. The
// machine itself must be the same on both nodes, because its memory depends on
// it, so the rest stays as libvirt wrote it. wrong_state if the machine has a
// vGPU; invalid if the target's devices are not those of the source.
func Retarget(running string, target Domain) (string, error) {
	if err := target.CheckMovable(); err != nil {
		return "", err
	}
	var dom lx.Domain
	if err := dom.Unmarshal(running); err != nil {
		return "", fmt.Errorf("decode domain XML: %w", err)
	}
	switch {
	case dom.QEMUCommandline != nil:
		return "", vgpuStays(target.ID)
	case dom.UUID != UUID(target.ID) || dom.Devices == nil || dom.OS == nil:
		return "", invalid("target", "the running domain is not instance %s", target.ID)
	}
	dom.Title = target.Name
	dom.Metadata = &lx.DomainMetadata{XML: metadata(target.ID, target.Node, true)}
	if target.Boot != nil {
		dom.OS.Kernel, dom.OS.Initrd, dom.OS.Cmdline = target.Boot.Kernel, target.Boot.Initrd, target.Boot.Cmdline
	}
	if (dom.OS.NVRam != nil) != (target.Firmware != nil) || (len(dom.Devices.TPMs) > 0) != target.TPM {
		return "", differ("firmware")
	}
	if target.Firmware != nil {
		target.firmware(dom.OS)
	}
	if !sameHugePages(dom.MemoryBacking, target.hugePages()) {
		return "", differ("hugePages")
	}
	if !sameCells(dom.CPU, target.guestCells()) {
		return "", differ("cells")
	}
	dom.VCPU, dom.CPUTune, dom.NUMATune = target.vcpu(), target.cpuTune(), target.numaTune()
	if err := retargetDisks(dom.Devices, target); err != nil {
		return "", err
	}
	if err := retargetPorts(dom.Devices, target); err != nil {
		return "", err
	}
	return dom.Marshal()
}

func retargetDisks(list *lx.DomainDeviceList, target Domain) error {
	disks, discs := slices.Clone(target.Disks), target.CDROMs
	for i := range list.Disks {
		x := &list.Disks[i]
		if at := driveIndex(*x); at >= 0 {
			// A change of the instance may have added or removed drives, which takes
			// effect with its next start, and emptied them.
			x.Source, x.BackingStore = nil, nil
			if at < len(target.Drives) {
				x.Source = mediumSource(target.Drives[at].Medium)
			}
			continue
		}
		if x.Device == "cdrom" {
			if len(discs) == 0 {
				return differ("disks")
			}
			x.Source, discs = discs[0].xml(0).Source, discs[1:]
			x.BackingStore = nil
			continue
		}
		// Disks that were attached at run time are in another order.
		at := slices.IndexFunc(disks, func(k Disk) bool { return k.Serial == x.Serial })
		if at < 0 {
			return differ("disks")
		}
		want := disks[at].xml(0)
		disks = slices.Delete(disks, at, at+1)
		if x.Driver == nil || x.Driver.IOThread == nil { // the domain was started by a Basalt version without I/O threads
			want.Driver.IOThread = nil
		}
		x.Driver, x.Source, x.IOTune = want.Driver, want.Source, want.IOTune
		x.BackingStore, x.Mirror = want.BackingStore, nil // without a backing store libvirt reads the target's own
	}
	if len(disks)+len(discs) > 0 {
		return differ("disks")
	}
	return nil
}

func retargetPorts(list *lx.DomainDeviceList, target Domain) error {
	if len(list.Serials) != 1 || len(list.Channels) != 1 || len(list.Interfaces) != len(target.NICs) ||
		(len(list.Graphics) == 1) != (target.VNCSocket != "") || len(list.Graphics) > 1 {
		return differ("devices")
	}
	list.Serials[0].Source = listen(target.SerialSocket)
	list.Serials[0].Log = &lx.DomainChardevLog{File: target.SerialLog, Append: "on"}
	list.Consoles = nil // libvirt's copy of the serial port: it adds another
	list.Channels[0].Source = listen(target.AgentSocket)
	nics := slices.Clone(target.NICs)
	for i := range list.Interfaces {
		x := &list.Interfaces[i]
		at := slices.IndexFunc(nics, func(n NIC) bool { return x.MAC != nil && x.MAC.Address == n.MAC })
		if at < 0 {
			return differ("nics")
		}
		want := nics[at].xml(0)
		if queuesOf(*x) != queuesOf(want) { // the guest uses them, and the target's tap has another number
			return differ("nics.queues")
		}
		nics = slices.Delete(nics, at, at+1)
		x.Source, x.Target = want.Source, want.Target
	}
	if len(list.Graphics) == 1 {
		list.Graphics[0].VNC = &lx.DomainGraphicVNC{
			Listeners: []lx.DomainGraphicListener{{Socket: &lx.DomainGraphicListenerSocket{Socket: target.VNCSocket}}},
		}
	}
	return nil
}

func differ(field string) error {
	return api.Errorf(api.CodeInvalid, "the running domain has different devices than the target").At(field).
		WithHint("restart it once: a pending change takes effect at its next start")
}
