package ovn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// makeTap creates a persistent tap, owned by uid, which is not up yet. An
// existing tap that is open is left unchanged; one that was created for
// another kind, several queues or one, is created again. Linux,
// networking/tuntap.rst.
func makeTap(ctx context.Context, name string, uid int, several bool) error {
	switch used, err := inUse(name); {
	case err != nil:
		return err
	case used: // opening one of several queues would divert frames from the guest
		return nil
	}
	fd, err := OpenTap(name, several)
	if errors.Is(err, unix.EINVAL) {
		if err := removeTap(ctx, name); err != nil {
			return err
		}
		fd, err = OpenTap(name, several)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.TUNSETOWNER, uid); err != nil {
		return fmt.Errorf("TUNSETOWNER: %w", err)
	}
	if err := setFilter(fd); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("TUNSETPERSIST: %w", err)
	}
	return nil
}

// inUse reports whether a process has the tap open while it is up. It then has
// a carrier, which netlink reports at once (IFF_LOWER_UP), and the flags of an
// ioctl only later.
func inUse(name string) (bool, error) {
	raw, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return false, fmt.Errorf("list network devices: %w", err)
	}
	all, err := syscall.ParseNetlinkMessage(raw)
	if err != nil {
		return false, fmt.Errorf("list network devices: %w", err)
	}
	for _, m := range all {
		if m.Header.Type != unix.RTM_NEWLINK || len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return false, fmt.Errorf("list network devices: %w", err)
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.IFLA_IFNAME && unix.ByteSliceToString(a.Value) == name {
				return binary.NativeEndian.Uint32(m.Data[8:])&unix.IFF_LOWER_UP != 0, nil // ifi_flags, rtnetlink(7)
			}
		}
	}
	return false, nil
}

// OpenTap opens one end of a tap device as a hypervisor does, and creates the
// device if it does not exist. It returns unix.EBUSY if another process has it
// open, and unix.EINVAL if it was created for one queue and several are
// requested, or vice versa.
func OpenTap(name string, several bool) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if several {
			flags |= unix.IFF_MULTI_QUEUE
		}
		r.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ignoreSettings are settings that make the node's kernel ignore what an
// instance sends (Linux, networking/ip-sysctl.rst): only the switch uses the
// tap. A switch in the kernel takes every frame before that; with the
// userspace datapath the kernel receives a copy, and without these settings
// the node answers ARP for all its addresses and accepts packets to them
// regardless of the ACLs.
var ignoreSettings = []struct{ path, value string }{
	{"ipv6/conf/%s/disable_ipv6", "1"},
	{"ipv4/conf/%s/arp_ignore", "8"}, // reply for no local address
	{"ipv4/conf/%s/rp_filter", "1"},  // accept nothing: no route leads to the tap
}

// setLink sets the MTU, and sets the link up.
func setLink(name string, mtu int) error {
	for _, d := range ignoreSettings {
		path := "/proc/sys/net/" + fmt.Sprintf(d.path, name)
		if err := os.WriteFile(path, []byte(d.value), 0); err != nil && !errors.Is(err, os.ErrNotExist) { // not found: a kernel without IPv6
			return err
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	r.SetUint32(uint32(mtu))
	if err := unix.IoctlIfreq(s, unix.SIOCSIFMTU, r); err != nil {
		return fmt.Errorf("set MTU %d: %w", mtu, err)
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

// removeTap removes the tap, even if a process has it open.
func removeTap(ctx context.Context, name string) error {
	out, err := exec.CommandContext(ctx, "ip", "link", "delete", "dev", name).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "Cannot find device") {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
