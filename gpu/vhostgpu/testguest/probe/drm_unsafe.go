package main

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These are the ioctls of the virtio_gpu driver (include/uapi/drm/virtgpu_drm.h)
// that a vGPU needs.
const (
	ioctlMap            = 0xc0106441
	ioctlExecbuffer     = 0xc0206442 // the size without ring_idx, which newer kernels accept too
	ioctlGetParam       = 0xc0106443
	ioctlResourceCreate = 0xc0386444
	ioctlGetCaps        = 0xc0186449
	ioctlGEMClose       = 0x40086409

	execFenceFDOut = 2
)

type device struct{ f *os.File }

// openDevice opens the render node of virtio_gpu that has our capability set.
func openDevice(capset uint32, size int) (*device, []byte, error) {
	nodes, _ := filepath.Glob("/dev/dri/renderD*")
	for _, n := range nodes {
		f, err := os.OpenFile(n, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		d := &device{f}
		caps := make([]byte, size)
		arg := struct {
			id, version uint32
			addr        uint64
			size, pad   uint32
		}{id: capset, version: 1, addr: uint64(uintptr(unsafe.Pointer(&caps[0]))), size: uint32(size)}
		if err := d.ioctl(ioctlGetCaps, unsafe.Pointer(&arg)); err == nil {
			return d, caps, nil
		}
		_ = f.Close()
	}
	return nil, nil, fmt.Errorf("no vGPU among %d render nodes", len(nodes))
}

func (d *device) ioctl(req uintptr, arg unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, d.f.Fd(), req, uintptr(arg))
		if e == 0 {
			return nil
		}
		if e != unix.EINTR && e != unix.EAGAIN {
			return e
		}
	}
}

type buffer struct {
	handle, resource uint32
	bytes            []byte
}

// create creates a resource of size bytes and maps it.
func (d *device) create(size int) (*buffer, error) {
	arg := struct {
		target, format, bind, width, height, depth, array, lastLevel, samples, flags uint32
		handle, resource, size, stride                                               uint32
	}{format: 64, bind: 1 << 4, width: uint32(size), height: 1, depth: 1, array: 1, size: uint32(size)}
	if err := d.ioctl(ioctlResourceCreate, unsafe.Pointer(&arg)); err != nil {
		return nil, fmt.Errorf("RESOURCE_CREATE of %d: %w", size, err)
	}
	m := struct {
		offset      uint64
		handle, pad uint32
	}{handle: arg.handle}
	if err := d.ioctl(ioctlMap, unsafe.Pointer(&m)); err != nil {
		return nil, fmt.Errorf("MAP: %w", err)
	}
	b, err := unix.Mmap(int(d.f.Fd()), int64(m.offset), size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return &buffer{arg.handle, arg.resource, b}, nil
}

// close returns the pages to the kernel.
func (d *device) close(b *buffer) error {
	if err := unix.Munmap(b.bytes); err != nil {
		return err
	}
	arg := struct{ handle, pad uint32 }{handle: b.handle}
	return d.ioctl(ioctlGEMClose, unsafe.Pointer(&arg))
}

// submit sends one command buffer; with fence it returns a sync_file.
func (d *device) submit(cmd []byte, fence bool) (int, error) {
	arg := struct {
		flags, size, a, b uint32
		handles           uint64
		count             uint32
		fence             int32
	}{size: uint32(len(cmd)), fence: -1}
	addr := uint64(uintptr(unsafe.Pointer(&cmd[0])))
	arg.a, arg.b = uint32(addr), uint32(addr>>32)
	if fence {
		arg.flags = execFenceFDOut
	}
	if err := d.ioctl(ioctlExecbuffer, unsafe.Pointer(&arg)); err != nil {
		return -1, fmt.Errorf("EXECBUFFER: %w", err)
	}
	return int(arg.fence), nil
}

// wait blocks on a sync_file and closes it; it returns false on a timeout.
func wait(fence, millis int) bool {
	defer func() { _ = unix.Close(fence) }()
	p := []unix.PollFd{{Fd: int32(fence), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, millis)
		if err != unix.EINTR {
			return n == 1
		}
	}
}
