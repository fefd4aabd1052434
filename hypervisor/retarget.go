package hypervisor

import (
	"fmt"

	lx "libvirt.org/go/libvirtxml"

	"github.com/basalt-gpu/basalt/api"
)

// maxBandwidth is more than any network has, and QEMU takes it.
const maxBandwidth = 1 << 40

// CheckMovable says why the machine cannot be moved: an *api.Error, or nil.
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
	return api.Errorf(api.CodeState, "%s has a vGPU: it cannot be moved while it runs", id).
		WithHint("stop it, move it and start it again")
}

// Check says what is wrong with the options for a move of id.
func (o MigrateOptions) Check(id api.InstanceID) error {
	if err := o.Target.CheckMovable(); err != nil {
		return err
	}
	switch {
	case o.Target.ID != id:
		return invalid("target", "%s is not %s", o.Target.ID, id)
	case o.Tunnel == nil:
		return invalid("tunnel", "missing")
	case o.BandwidthBytesPerSecond < 0 || o.BandwidthBytesPerSecond > maxBandwidth:
		return invalid("bandwidthBytesPerSecond", "%d is not between 0 and %d", o.BandwidthBytesPerSecond, int64(maxBandwidth))
	case o.MaxDowntime < 0 || o.MaxDowntime.Milliseconds() > 2_000_000: // QEMU's limit, MAX_MIGRATE_DOWNTIME
		return invalid("maxDowntime", "%s is not between 0 and 2000 s", o.MaxDowntime)
	}
	_, err := o.CopyIndexes()
	return err
}

// CopyIndexes are the places of CopyDisks among the target's disks.
func (o MigrateOptions) CopyIndexes() ([]int, error) {
	place := map[string]int{}
	for i, k := range o.Target.Disks {
		if _, twice := place[k.Serial]; twice {
			i = -1
		}
		place[k.Serial] = i
	}
	var all []int
	for _, serial := range o.CopyDisks {
		i, ok := place[serial]
		if serial == "" || !ok || i < 0 {
			return nil, invalid("copyDisks", "there is not exactly one disk %q", serial)
		}
		all = append(all, i)
		place[serial] = -1
	}
	return all, nil
}

// Retarget is the XML of a running machine with everything in it that differs
// on the target: paths, devices of the host, and whose it is. The machine
// itself must be the same on both sides, or its memory means nothing, so the
// rest is left as libvirt gave it. wrong_state when the machine has a vGPU;
// invalid when the target's devices are not the source's.
func Retarget(running string, target Domain) (string, error) {
	if err := target.CheckMovable(); err != nil {
		return "", err
	}
	var dom lx.Domain
	if err := dom.Unmarshal(running); err != nil {
		return "", fmt.Errorf("domain XML: %w", err)
	}
	switch {
	case dom.QEMUCommandline != nil:
		return "", vgpuStays(target.ID)
	case dom.UUID != UUID(target.ID) || dom.Devices == nil || dom.OS == nil:
		return "", invalid("target", "the running machine is not %s", target.ID)
	}
	dom.Title = target.Name
	dom.Metadata = &lx.DomainMetadata{XML: metadata(target.ID, target.Node, true)}
	if target.Boot != nil {
		dom.OS.Kernel, dom.OS.Initrd, dom.OS.Cmdline = target.Boot.Kernel, target.Boot.Initrd, target.Boot.Cmdline
	}
	if err := retargetDisks(dom.Devices, target); err != nil {
		return "", err
	}
	if err := retargetPorts(dom.Devices, target); err != nil {
		return "", err
	}
	return dom.Marshal()
}

func retargetDisks(list *lx.DomainDeviceList, target Domain) error {
	disks, discs := target.Disks, target.CDROMs
	for i := range list.Disks {
		x := &list.Disks[i]
		path := ""
		switch {
		case x.Device == "cdrom" && len(discs) > 0:
			path, discs = discs[0].Path, discs[1:]
		case x.Device != "cdrom" && len(disks) > 0 && disks[0].Serial == x.Serial:
			path = disks[0].Path
			x.Driver = disks[0].xml(0).Driver
			disks = disks[1:]
		default:
			return differ("disks")
		}
		x.Source = &lx.DomainDiskSource{File: &lx.DomainDiskSourceFile{File: path}}
		x.BackingStore, x.Mirror = nil, nil // libvirt finds the target's own
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
	list.Consoles = nil // libvirt's copy of the serial port: it makes another
	list.Channels[0].Source = listen(target.AgentSocket)
	for i, n := range target.NICs {
		want := n.xml()
		x := &list.Interfaces[i]
		if x.MAC == nil || x.MAC.Address != n.MAC {
			return differ("nics")
		}
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
	return api.Errorf(api.CodeInvalid, "the machine that runs has others than the target would have").At(field).
		WithHint("restart it once: a change of it waits for its next start")
}
