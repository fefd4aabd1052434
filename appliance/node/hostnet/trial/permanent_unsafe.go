package trial

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// permanent returns the permanent address of a card, which it keeps while a bond
// assigns it another; or the current one if the driver does not report a permanent
// one.
func permanent(i net.Interface) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return i.HardwareAddr.String()
	}
	defer func() { _ = unix.Close(fd) }()
	// struct ethtool_perm_addr (linux/ethtool.h)
	var arg struct {
		cmd, size uint32
		data      [32]byte
	}
	arg.cmd, arg.size = unix.ETHTOOL_GPERMADDR, uint32(len(arg.data))
	// struct ifreq (linux/if.h): a name and a pointer.
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:unix.IFNAMSIZ-1], i.Name)
	req.data = unsafe.Pointer(&arg)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	mac := net.HardwareAddr(arg.data[:6])
	if errno != 0 || arg.size != 6 || mac.String() == "00:00:00:00:00:00" {
		return i.HardwareAddr.String()
	}
	return mac.String()
}
