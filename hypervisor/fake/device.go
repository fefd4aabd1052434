package fake

import (
	"bytes"
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// device starts a device method on a domain that is not being migrated. If it
// returns nil, the caller holds the lock.
func (d *Driver) device(ctx context.Context, op string, id api.InstanceID) (*domain, error) {
	if err := d.enter(ctx, op, id); err != nil {
		return nil, err
	}
	dom, err := d.find(id)
	if err == nil && (d.moves[id] != nil || dom.status.State == hypervisor.Incoming || dom.status.State == hypervisor.Outgoing) {
		err = api.Errorf(api.CodeState, "instance %s is being migrated", id)
	}
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return dom, nil
}

// both returns the domain's existing descriptions: its definition and, if it
// runs, that of the running machine.
func (dom *domain) both() []*hypervisor.Domain {
	if dom.status.State.Active() {
		return []*hypervisor.Domain{&dom.spec, &dom.running}
	}
	return []*hypervisor.Domain{&dom.spec}
}

func disk(in *hypervisor.Domain, serial string) *hypervisor.Disk {
	i := slices.IndexFunc(in.Disks, func(k hypervisor.Disk) bool { return k.Serial == serial })
	if i < 0 {
		return nil
	}
	return &in.Disks[i]
}

// keys checks that the secrets of the disks are set.
func (d *Driver) keys(disks ...hypervisor.Disk) error {
	for _, k := range disks {
		secrets := []string{k.Secret}
		for _, l := range k.Backing {
			secrets = append(secrets, l.Secret)
		}
		if k.RBD != nil {
			secrets = append(secrets, k.RBD.SecretUUID)
		}
		for _, s := range secrets {
			if _, ok := d.secrets[s]; s != "" && !ok {
				return api.Errorf(api.CodeUnavailable, "the hypervisor has no key of disk %s", k.Serial)
			}
		}
	}
	return nil
}

// AttachDisk implements hypervisor.Devices.
func (d *Driver) AttachDisk(ctx context.Context, id api.InstanceID, k hypervisor.Disk) error {
	return d.attach(ctx, "AttachDisk", id, func(room hypervisor.Room, in hypervisor.Attached) (string, error) {
		return room.Disk(id, in, k)
	}, func(in *hypervisor.Domain, running bool) error {
		if running {
			if err := d.keys(k); err != nil {
				return err
			}
		}
		in.Disks = append(in.Disks, k)
		return nil
	})
}

// AttachNIC implements hypervisor.Devices.
func (d *Driver) AttachNIC(ctx context.Context, id api.InstanceID, n hypervisor.NIC) error {
	return d.attach(ctx, "AttachNIC", id, func(room hypervisor.Room, in hypervisor.Attached) (string, error) {
		return room.NIC(id, in, n)
	}, func(in *hypervisor.Domain, _ bool) error {
		in.NICs = append(in.NICs, n)
		return nil
	})
}

// attach uses the same pure functions as the real driver to decide what to
// attach.
func (d *Driver) attach(ctx context.Context, op string, id api.InstanceID, want func(hypervisor.Room, hypervisor.Attached) (string, error),
	add func(in *hypervisor.Domain, running bool) error) error {
	dom, err := d.device(ctx, op, id)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	has := make([]*hypervisor.Attached, 2) // defined, running
	for i, in := range dom.both() {
		text, err := in.XML()
		if err != nil {
			return err
		}
		a, err := hypervisor.ParseAttached(text)
		if err != nil {
			return err
		}
		has[i] = &a
	}
	room := hypervisor.RoomOf(has[1], has[0])
	both := dom.both()
	for i := len(both) - 1; i >= 0; i-- { // the running machine first: it may reject the device
		text, err := want(room, *has[i])
		if err == nil && text != "" {
			err = add(both[i], i == 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DetachDisk implements hypervisor.Devices.
func (d *Driver) DetachDisk(ctx context.Context, id api.InstanceID, serial string) error {
	return d.detach(ctx, "DetachDisk", id, "disk "+serial, func(in *hypervisor.Domain) bool { return disk(in, serial) != nil },
		func(in *hypervisor.Domain) {
			in.Disks = slices.DeleteFunc(in.Disks, func(k hypervisor.Disk) bool { return k.Serial == serial })
		})
}

// DetachNIC implements hypervisor.Devices.
func (d *Driver) DetachNIC(ctx context.Context, id api.InstanceID, mac string) error {
	isIt := func(n hypervisor.NIC) bool { return n.MAC == mac }
	return d.detach(ctx, "DetachNIC", id, "network interface "+mac, func(in *hypervisor.Domain) bool { return slices.ContainsFunc(in.NICs, isIt) },
		func(in *hypervisor.Domain) { in.NICs = slices.DeleteFunc(in.NICs, isIt) })
}

func (d *Driver) detach(ctx context.Context, op string, id api.InstanceID, what string, has func(*hypervisor.Domain) bool, drop func(*hypervisor.Domain)) error {
	dom, err := d.device(ctx, op, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	} else if err != nil {
		return err
	}
	defer d.mu.Unlock()
	for i, in := range dom.both() {
		if i == 1 && dom.holds && has(in) {
			return api.Errorf(api.CodeInUse, "the guest of instance %s did not release its %s", id, what).
				WithHint("unmount it in the guest, or restart the instance")
		}
		drop(in)
	}
	return nil
}

// live starts a method on a disk of a running domain. The caller holds the
// lock if k is not nil; idle is the error for a domain that does not run.
func (d *Driver) live(ctx context.Context, op string, id api.InstanceID, serial string, idle error) (dom *domain, k *hypervisor.Disk, err error) {
	if dom, err = d.device(ctx, op, id); err != nil {
		return nil, nil, err
	}
	if !dom.status.State.Active() {
		d.mu.Unlock()
		return nil, nil, idle
	}
	if k = disk(&dom.running, serial); k == nil {
		d.mu.Unlock()
		return nil, nil, api.Errorf(api.CodeNotFound, "instance %s has no disk %s", id, serial)
	}
	return dom, k, nil
}

// ResizeDisk implements hypervisor.Devices.
func (d *Driver) ResizeDisk(ctx context.Context, id api.InstanceID, serial string, n int64) error {
	dom, k, err := d.live(ctx, "ResizeDisk", id, serial, nil)
	if k == nil {
		return err
	}
	defer d.mu.Unlock()
	if dom.sizes == nil {
		dom.sizes = map[string]int64{}
	}
	dom.sizes[serial] = max(dom.sizes[serial], n)
	return nil
}

// SetDiskQoS implements hypervisor.Devices.
func (d *Driver) SetDiskQoS(ctx context.Context, id api.InstanceID, serial string, q hypervisor.QoS) error {
	if err := q.Validate(); err != nil {
		return err
	}
	dom, err := d.device(ctx, "SetDiskQoS", id)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	found := false
	for _, in := range dom.both() {
		if k := disk(in, serial); k != nil {
			k.QoS, found = q, true
		}
	}
	if !found {
		return api.Errorf(api.CodeNotFound, "instance %s has no disk %s", id, serial)
	}
	return nil
}

func idle(id api.InstanceID) error {
	return api.Errorf(api.CodeState, "instance %s is not running", id)
}

// chain returns the files of a disk, from the top.
func chain(k *hypervisor.Disk) (all []string) {
	if k.RBD != nil {
		return nil
	}
	all = []string{k.Path}
	for _, l := range k.Backing {
		all = append(all, l.Path)
	}
	return all
}

// SnapshotDisk implements hypervisor.Devices.
func (d *Driver) SnapshotDisk(ctx context.Context, id api.InstanceID, serial, overlay string) error {
	dom, k, err := d.live(ctx, "SnapshotDisk", id, serial, idle(id))
	if k == nil {
		return err
	}
	defer d.mu.Unlock()
	if slices.Contains(chain(k), overlay) {
		return nil
	}
	for _, in := range dom.both() {
		if k := disk(in, serial); k != nil {
			k.Backing = append([]hypervisor.Layer{{Path: k.Path, Format: k.Format, Secret: k.Secret}}, k.Backing...)
			k.Path, k.Format = overlay, "qcow2"
		}
	}
	return nil
}

// CommitDisk implements hypervisor.Devices.
func (d *Driver) CommitDisk(ctx context.Context, id api.InstanceID, serial, top, base string) error {
	dom, k, err := d.live(ctx, "CommitDisk", id, serial, idle(id))
	if k == nil {
		return err
	}
	defer d.mu.Unlock()
	if !slices.Contains(chain(k), base) {
		return api.Errorf(api.CodeNotFound, "disk %s of instance %s is not based on %s", serial, id, base)
	}
	for _, in := range dom.both() {
		k := disk(in, serial)
		if k == nil {
			continue
		}
		files := append([]hypervisor.Layer{{Path: k.Path, Format: k.Format, Secret: k.Secret}}, k.Backing...)
		from := slices.IndexFunc(files, func(l hypervisor.Layer) bool { return l.Path == top })
		to := slices.IndexFunc(files, func(l hypervisor.Layer) bool { return l.Path == base })
		if from >= 0 && from < to {
			files = slices.Delete(files, from, to)
		}
		k.Path, k.Format, k.Secret, k.Backing = files[0].Path, files[0].Format, files[0].Secret, files[1:]
	}
	return nil
}

// Disks implements hypervisor.Devices.
func (d *Driver) Disks(ctx context.Context, id api.InstanceID) (all []hypervisor.OpenDisk, err error) {
	if err := d.enter(ctx, "Disks", id); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	if err != nil {
		return nil, err
	}
	both := dom.both()
	in := both[len(both)-1]
	for i := range in.Disks {
		k := &in.Disks[i]
		all = append(all, hypervisor.OpenDisk{Serial: k.Serial, Chain: chain(k), QoS: k.QoS})
	}
	return all, nil
}

// SetMedium implements hypervisor.Devices.
func (d *Driver) SetMedium(ctx context.Context, id api.InstanceID, drive int, path string) error {
	if err := hypervisor.CheckMedium(drive, path); err != nil {
		return err
	}
	dom, err := d.device(ctx, "SetMedium", id)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	both := dom.both()
	now := both[len(both)-1]
	switch {
	case drive >= len(now.Drives):
		return hypervisor.NoDrive(id)
	case dom.holds && len(both) > 1 && now.Drives[drive].Medium != path:
		return hypervisor.MediumHeld(id)
	}
	for _, in := range both {
		if drive < len(in.Drives) {
			in.Drives[drive].Medium = path
		}
	}
	return nil
}

// Drives implements hypervisor.Devices.
func (d *Driver) Drives(ctx context.Context, id api.InstanceID) ([]hypervisor.Drive, error) {
	if err := d.enter(ctx, "Drives", id); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	if err != nil {
		return nil, err
	}
	both := dom.both()
	return slices.Clone(both[len(both)-1].Drives), nil
}

// SetSecret implements hypervisor.Devices.
func (d *Driver) SetSecret(ctx context.Context, s hypervisor.Secret) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := d.enter(ctx, "SetSecret", ""); err != nil {
		return err
	}
	defer d.mu.Unlock()
	d.secrets[s.UUID] = bytes.Clone(s.Value)
	return nil
}

// UnsetSecret implements hypervisor.Devices.
func (d *Driver) UnsetSecret(ctx context.Context, uuid string) error {
	if err := d.enter(ctx, "UnsetSecret", ""); err != nil {
		return err
	}
	defer d.mu.Unlock()
	delete(d.secrets, uuid)
	return nil
}

// Freeze implements hypervisor.Driver.
func (d *Driver) Freeze(ctx context.Context, id api.InstanceID) (int, error) {
	if err := d.enter(ctx, "Freeze", id); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if err := d.agent(id); err != nil {
		return 0, err
	}
	dom := d.domains[id]
	if dom.frozen {
		return 0, nil
	}
	dom.frozen = true
	return 1, nil
}

// Thaw implements hypervisor.Driver.
func (d *Driver) Thaw(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "Thaw", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	err := d.agent(id)
	if c := api.CodeOf(err); c == api.CodeState || c == api.CodeNotFound {
		return nil
	}
	if err == nil {
		d.domains[id].frozen = false
	}
	return err
}
