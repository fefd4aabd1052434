// Package ethtool turns a network interface's checksum offload off and on:
// interfaces connected to a userspace switch must compute their checksums
// themselves.
package ethtool

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, data uint32 }

// Commands of linux/ethtool.h that x/sys does not have.
const (
	getTx = 0x16 // ETHTOOL_GTXCSUM
	setTx = 0x17 // ETHTOOL_STXCSUM
)

// ifreq is struct ifreq of linux/if.h with ifr_data.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// Offload reports whether the interface, in the calling thread's network
// namespace, offloads transmit checksums.
func Offload(name string) bool {
	v := ethtoolValue{cmd: getTx}
	return ethtool(name, &v) == nil && v.data != 0
}

// SetOffload turns the offload of transmit checksums on or off; segmentation
// offload depends on it.
func SetOffload(name string, on bool) error {
	v := ethtoolValue{cmd: setTx}
	if on {
		v.data = 1
	}
	if err := ethtool(name, &v); err != nil {
		return fmt.Errorf("disable checksum offload of %s: %w", name, err)
	}
	return nil
}

func ethtool(name string, v *ethtoolValue) error {
	if len(name) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req := ifreq{data: unsafe.Pointer(v)}
	copy(req.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}
