package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Ioctls of Linux UAPI, drm/drm.h and drm/virtgpu_drm.h. The libraries recognize a vGPU by
// the same ones (gpu/guest/src/carrier_virtio.c).
const (
	drmVersion = 0xc0406400 // _IOWR('d', 0x00, struct drm_version), 64 bytes on 64 bits
	virtioCaps = 0xc0186449 // _IOWR('d', 0x49, struct drm_virtgpu_get_caps), 24 bytes
)

// drmVersionArgs is struct drm_version of drm/drm.h.
type drmVersionArgs struct {
	major, minor, patch int32
	_                   int32
	nameLength          uint64
	name                unsafe.Pointer
	dateLength          uint64
	date                unsafe.Pointer
	descLength          uint64
	desc                unsafe.Pointer
}

// virtioCapsArgs is struct drm_virtgpu_get_caps of drm/virtgpu_drm.h.
type virtioCapsArgs struct {
	set, version uint32
	address      unsafe.Pointer
	size, _      uint32
}

// ioctl makes the system call, and repeats it while it is interrupted.
func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg))
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
		default:
			return errno
		}
	}
}

// isVGPU returns nil if path is the render node of a Basalt vGPU, and otherwise the reason
// why it is not.
func isVGPU(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return errors.Unwrap(err) // the caller adds the path
	}
	defer f.Close()
	name := make([]byte, 16)
	v := drmVersionArgs{nameLength: uint64(len(name)), name: unsafe.Pointer(unsafe.SliceData(name))}
	err = ioctl(f, drmVersion, unsafe.Pointer(&v))
	runtime.KeepAlive(name)
	if err != nil {
		return fmt.Errorf("not a DRM device: %w", err)
	}
	if driver := string(name[:min(v.nameLength, uint64(len(name)))]); driver != "virtio_gpu" {
		return fmt.Errorf("its driver is %s, want virtio_gpu", driver)
	}
	caps := make([]byte, abi.CapsetSize)
	g := virtioCapsArgs{set: abi.CapsetID, version: 1, address: unsafe.Pointer(unsafe.SliceData(caps)), size: uint32(len(caps))}
	err = ioctl(f, virtioCaps, unsafe.Pointer(&g))
	runtime.KeepAlive(caps)
	if err != nil || binary.LittleEndian.Uint32(caps) != abi.Magic {
		return errors.New("a virtio-gpu that is not a Basalt vGPU")
	}
	if major := binary.LittleEndian.Uint16(caps[4:]); major != abi.Major {
		return fmt.Errorf("the vGPU of the host has protocol version %d, want %d: install the guest tools of that host", major, abi.Major)
	}
	return nil
}
