package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// detachPoll is how often to check whether the guest has released a device.
const detachPoll = 100 * time.Millisecond

// devices are a domain's devices: of the running machine (nil: it does not
// run) and of its definition (nil: it has none any more).
type devices struct {
	running, defined *hypervisor.Attached
}

// observeDevices returns the domain's devices. It returns wrong_state for a
// domain that is being migrated.
func observeDevices(dom *lv.Domain, id api.InstanceID) (s devices, err error) {
	st, err := active(dom)
	if err != nil {
		return s, err
	}
	job, err := dom.GetJobStats(0)
	if st == hypervisor.Incoming || st == hypervisor.Outgoing || err == nil && outgoing(job) {
		return s, api.Errorf(api.CodeState, "instance %s is being migrated", id)
	}
	if st.Active() {
		if s.running, err = attached(dom, 0); err != nil {
			return s, err
		}
	}
	s.defined, err = attached(dom, lv.DOMAIN_XML_INACTIVE)
	return s, err
}

func attached(dom *lv.Domain, flags lv.DomainXMLFlags) (*hypervisor.Attached, error) {
	// Disks that are attached again later need their secrets.
	text, err := dom.GetXMLDesc(flags | lv.DOMAIN_XML_SECURE)
	if err != nil {
		return nil, err
	}
	a, err := hypervisor.ParseAttached(text)
	return &a, err
}

// AttachDisk implements hypervisor.Devices.
func (d *Driver) AttachDisk(ctx context.Context, id api.InstanceID, k hypervisor.Disk) error {
	return d.attach(ctx, id, func(r hypervisor.Room, in hypervisor.Attached) (string, error) { return r.Disk(id, in, k) })
}

// AttachNIC implements hypervisor.Devices.
func (d *Driver) AttachNIC(ctx context.Context, id api.InstanceID, n hypervisor.NIC) error {
	return d.attach(ctx, id, func(r hypervisor.Room, in hypervisor.Attached) (string, error) { return r.NIC(id, in, n) })
}

func (d *Driver) attach(ctx context.Context, id api.InstanceID, want func(hypervisor.Room, hypervisor.Attached) (string, error)) error {
	return d.onDomain(ctx, id, func(dom *lv.Domain) error {
		s, err := observeDevices(dom, id)
		if err != nil {
			return err
		}
		room := hypervisor.RoomOf(s.running, s.defined)
		text, err := want(room, *s.defined)
		var flags lv.DomainDeviceModifyFlags
		if text != "" {
			flags = lv.DOMAIN_DEVICE_MODIFY_CONFIG
		}
		if err == nil && s.running != nil {
			var live string
			if live, err = want(room, *s.running); live != "" {
				text, flags = live, flags|lv.DOMAIN_DEVICE_MODIFY_LIVE
			}
		}
		if err != nil || text == "" {
			return err
		}
		return dom.AttachDeviceFlags(text, flags)
	})
}

// DetachDisk implements hypervisor.Devices.
func (d *Driver) DetachDisk(ctx context.Context, id api.InstanceID, serial string) error {
	return d.detach(ctx, id, "disk "+serial, func(a *hypervisor.Attached) (hypervisor.Detachable, error) { return a.DetachDisk(serial) })
}

// DetachNIC implements hypervisor.Devices.
func (d *Driver) DetachNIC(ctx context.Context, id api.InstanceID, mac string) error {
	return d.detach(ctx, id, "network interface "+mac, func(a *hypervisor.Attached) (hypervisor.Detachable, error) { return a.DetachNIC(mac) })
}

// detach removes the device from the definition, requests its removal from the
// guest, and waits until libvirt does not list it any more.
func (d *Driver) detach(ctx context.Context, id api.InstanceID, what string, find func(*hypervisor.Attached) (hypervisor.Detachable, error)) error {
	deadline := time.Now().Add(d.opt.DetachPatience)
	for asked := false; ; asked = true {
		gone, err := with(ctx, d, id, func(dom *lv.Domain) (bool, error) { return detachOnce(dom, id, !asked, find) })
		switch {
		case err != nil:
			return none(err)
		case gone:
			return nil
		case time.Now().After(deadline):
			return api.Errorf(api.CodeInUse, "the guest of instance %s did not release its %s", id, what).
				WithHint("unmount it in the guest, or restart the instance")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(detachPoll):
		}
	}
}

func detachOnce(dom *lv.Domain, id api.InstanceID, ask bool, find func(*hypervisor.Attached) (hypervisor.Detachable, error)) (gone bool, err error) {
	s, err := observeDevices(dom, id)
	if err != nil {
		return false, err
	}
	it, err := find(s.defined)
	if err == nil && it.XML != "" {
		err = dom.DetachDeviceFlags(it.XML, lv.DOMAIN_DEVICE_MODIFY_CONFIG)
	}
	if err != nil || s.running == nil {
		return err == nil, err
	}
	if it, err = find(s.running); err != nil || it.XML == "" {
		return err == nil, err
	}
	if ask {
		err = unplug(dom, it.Alias)
	}
	return false, err
}

// unplug requests the removal of a device from the guest. It sends the command
// to QEMU directly: if the guest completes an earlier request at the very
// moment that libvirt asks again, libvirt (11.3.0) removes the device twice
// and crashes (virDomainAuditDisk under qemuDomainDetachDeviceLive). Libvirt
// learns of the removal by QEMU's event, as with a slow guest.
func unplug(dom *lv.Domain, alias string) error {
	cmd, err := json.Marshal(map[string]any{"execute": "device_del", "arguments": map[string]string{"id": alias}})
	if err != nil {
		return err
	}
	text, err := dom.QemuMonitorCommand(string(cmd), lv.DOMAIN_QEMU_MONITOR_COMMAND_DEFAULT)
	if err != nil {
		return err
	}
	return unplugged(text)
}

// unplugged reads QEMU's answer to device_del (QMP reference). A device that
// was removed, or requested already, is not an error: the next check shows it.
func unplugged(text string) error {
	var answer struct {
		Error *struct{ Class, Desc string }
	}
	switch err := json.Unmarshal([]byte(text), &answer); {
	case err != nil:
		return fmt.Errorf("decode response to device_del: %w", err)
	case answer.Error == nil, answer.Error.Class == "DeviceNotFound", strings.Contains(answer.Error.Desc, "in the process of unplug"):
		return nil
	default:
		return fmt.Errorf("QEMU refused to unplug the device: %s", answer.Error.Desc)
	}
}

// onDisk calls f with a running domain, its devices, and libvirt's name of the
// disk. It returns idle if the domain does not run.
func (d *Driver) onDisk(ctx context.Context, id api.InstanceID, serial string, idle error, f func(dom *lv.Domain, a hypervisor.Attached, device string) error) error {
	return d.onDomain(ctx, id, func(dom *lv.Domain) error {
		s, err := observeDevices(dom, id)
		if err != nil {
			return err
		}
		if s.running == nil {
			return idle
		}
		device := s.running.Device(serial)
		if device == "" {
			return api.Errorf(api.CodeNotFound, "instance %s has no disk %s", id, serial)
		}
		return f(dom, *s.running, device)
	})
}

// ResizeDisk implements hypervisor.Devices.
func (d *Driver) ResizeDisk(ctx context.Context, id api.InstanceID, serial string, bytes int64) error {
	return d.onDisk(ctx, id, serial, nil, func(dom *lv.Domain, _ hypervisor.Attached, device string) error {
		info, err := dom.GetBlockInfo(device, 0)
		if err != nil || int64(info.Capacity) >= bytes {
			return err
		}
		return dom.BlockResize(device, uint64(bytes), lv.DOMAIN_BLOCK_RESIZE_BYTES)
	})
}

// SetDiskQoS implements hypervisor.Devices.
func (d *Driver) SetDiskQoS(ctx context.Context, id api.InstanceID, serial string, q hypervisor.QoS) error {
	if err := q.Validate(); err != nil {
		return err
	}
	params := &lv.DomainBlockIoTuneParameters{
		ReadIopsSecSet: true, ReadIopsSec: uint64(q.ReadIOPS), WriteIopsSecSet: true, WriteIopsSec: uint64(q.WriteIOPS),
		ReadBytesSecSet: true, ReadBytesSec: uint64(q.ReadBytesPerSecond), WriteBytesSecSet: true, WriteBytesSec: uint64(q.WriteBytesPerSecond),
	}
	return d.onDomain(ctx, id, func(dom *lv.Domain) error {
		s, err := observeDevices(dom, id)
		if err != nil {
			return err
		}
		found := false
		for _, at := range []struct {
			a    *hypervisor.Attached
			flag lv.DomainModificationImpact
		}{{s.running, lv.DOMAIN_AFFECT_LIVE}, {s.defined, lv.DOMAIN_AFFECT_CONFIG}} {
			if at.a == nil {
				continue
			}
			if device := at.a.Device(serial); device != "" {
				found = true
				err = errors.Join(err, dom.SetBlockIoTune(device, params, at.flag))
			}
		}
		if !found {
			return api.Errorf(api.CodeNotFound, "instance %s has no disk %s", id, serial)
		}
		return err
	})
}

// SetMedium implements hypervisor.Devices.
func (d *Driver) SetMedium(ctx context.Context, id api.InstanceID, drive int, path string) error {
	if err := hypervisor.CheckMedium(drive, path); err != nil {
		return err
	}
	return d.onDomain(ctx, id, func(dom *lv.Domain) error {
		s, err := observeDevices(dom, id)
		if err != nil {
			return err
		}
		if s.running != nil {
			text, err := s.running.Medium(id, drive, path)
			if err == nil && text != "" {
				err = held(dom.UpdateDeviceFlags(text, lv.DOMAIN_DEVICE_MODIFY_LIVE), id)
			}
			if err != nil {
				return err
			}
		}
		text, err := s.defined.Medium(id, drive, path)
		if api.CodeOf(err) == api.CodeState && s.running != nil {
			return nil // it has no drive at its next start
		}
		if err != nil || text == "" {
			return err
		}
		return dom.UpdateDeviceFlags(text, lv.DOMAIN_DEVICE_MODIFY_CONFIG)
	})
}

// held replaces the error for a guest that keeps the tray of its drive closed.
func held(err error, id api.InstanceID) error {
	var e lv.Error
	if errors.As(err, &e) && e.Domain == lv.FROM_QEMU && strings.Contains(strings.ToLower(e.Message), "tray") {
		return errors.Join(hypervisor.MediumHeld(id), errors.New(e.Message)) // its code says less
	}
	return err
}

// Drives implements hypervisor.Devices.
func (d *Driver) Drives(ctx context.Context, id api.InstanceID) ([]hypervisor.Drive, error) {
	a, err := d.devicesOf(ctx, id)
	return a.Drives(), err
}

// Disks implements hypervisor.Devices.
func (d *Driver) Disks(ctx context.Context, id api.InstanceID) ([]hypervisor.OpenDisk, error) {
	a, err := d.devicesOf(ctx, id)
	return a.Open(), err
}

// devicesOf returns the devices of the running machine, or of its definition if it
// does not run.
func (d *Driver) devicesOf(ctx context.Context, id api.InstanceID) (hypervisor.Attached, error) {
	return with(ctx, d, id, func(dom *lv.Domain) (hypervisor.Attached, error) {
		st, err := active(dom)
		if err != nil {
			return hypervisor.Attached{}, err
		}
		flags := lv.DOMAIN_XML_INACTIVE
		if st.Active() {
			flags = 0
		}
		a, err := attached(dom, flags)
		if err != nil {
			return hypervisor.Attached{}, err
		}
		return *a, nil
	})
}

// SetSecret implements hypervisor.Devices.
func (d *Driver) SetSecret(ctx context.Context, secret hypervisor.Secret) error {
	text, err := secret.XML()
	if err != nil {
		return err
	}
	value := append([]byte(nil), secret.Value...) // f may outlive this call
	_, err = call(ctx, d, "", func(s *session) (struct{}, error) {
		defer clear(value)
		have, err := s.SecretDefineXML(text, 0)
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = have.Free() }()
		return struct{}{}, have.SetValue(value, 0)
	})
	return err
}

// UnsetSecret implements hypervisor.Devices.
func (d *Driver) UnsetSecret(ctx context.Context, uuid string) error {
	_, err := call(ctx, d, "", func(s *session) (struct{}, error) {
		have, err := s.LookupSecretByUUIDString(uuid)
		if err == nil {
			defer func() { _ = have.Free() }()
			err = have.Undefine()
		}
		if is(err, lv.ERR_NO_SECRET) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}
