package soft_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// touch executes generic and global accesses of every width to one address.
const touch = `.version 6.0
.target sm_50
.address_size 64
.visible .entry touch(.param .u64 p)
{
	.reg .b64 %rd<4>;
	.reg .b32 %r<4>;
	.reg .pred %p<2>;
	ld.param.u64 %rd1, [p];
	isspacep.global %p1, %rd1;
	selp.u32 %r1, 1, 0, %p1;
	st.global.u32 [%rd1], %r1;
	cvta.to.global.u64 %rd2, %rd1;
	atom.global.add.u32 %r2, [%rd2+4], 5;
	st.u8 [%rd1+8], 7;
	st.u16 [%rd1+10], 0x0809;
	ld.u64 %rd3, [%rd1];
	st.u64 [%rd1+16], %rd3;
	red.global.add.u32 [%rd1+4], 1;
	ret;
}`

func one(p ...uint64) worker.Launch {
	l := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for _, v := range p {
		l.Params = binary.LittleEndian.AppendUint64(l.Params, v)
	}
	return l
}

func newContextIn(t *testing.T, w *worker.Window) worker.Context {
	t.Helper()
	d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, nil, w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func loadKernels(t *testing.T, c worker.Context, src string) map[string]worker.Function {
	t.Helper()
	_, funcs, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	if err != nil {
		t.Fatalf("load module: %v\n%s", err, info.ErrorLog)
	}
	all := map[string]worker.Function{}
	for i, f := range info.Functions {
		all[f.Name] = funcs[i]
	}
	return all
}

func settled(t *testing.T, c worker.Context) error {
	t.Helper()
	got := make(chan error, 1)
	if err := c.Notify(func(err error) { got <- err }); err != nil {
		return err
	}
	return patience.Receive(t, time.Minute, "the context's work is done", got)
}

// TestKernelsUseHostMemory checks that host memory is global memory to a kernel for all
// accesses, and that an access past its end fails.
func TestKernelsUseHostMemory(t *testing.T) {
	w := drivertest.Window(t, abi.MinWindow)
	address, device, guest := drivertest.HostMemory(t, w, 0)
	c := newContextIn(t, w)
	if err := c.HostRegister(address, device); err != nil {
		t.Fatal(err)
	}
	f := loadKernels(t, c, touch)["touch"]
	end := uint64(len(device)) - 24
	for _, off := range []uint64{0, end} {
		if err := errors.Join(c.Launch(nil, f, one(address+off), nil), settled(t, c)); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint64(guest[off:]); got != 6<<32|1 {
			t.Errorf("guest memory at offset %d = %#x, want %#x", off, got, uint64(6<<32|1))
		}
		if got := binary.LittleEndian.Uint64(guest[off+16:]); guest[off+8] != 7 || guest[off+10] != 9 || got != 5<<32|1 {
			t.Errorf("guest memory at offset %d = % x, want byte 8 = 7, byte 10 = 9 and %#x at 16", off, guest[off:off+24], uint64(5<<32|1))
		}
	}
	err := errors.Join(c.Launch(nil, f, one(address+end+8), nil), settled(t, c))
	if !errors.Is(err, abi.ErrIllegalAddress) {
		t.Errorf("access past the end of host memory: error %v, want %v", err, abi.ErrIllegalAddress)
	}
}

// TestHostMemoryOutsideOfItsPart checks that only the host part of the window can be
// host memory.
func TestHostMemoryOutsideOfItsPart(t *testing.T) {
	w := drivertest.Window(t, abi.MinWindow)
	c := newContextIn(t, w)
	memory := make([]byte, 1<<20)
	for _, address := range []uint64{0, w.Base, w.Host().Base - 4096, w.Host().Base + w.Host().Size - 4096, w.Base + w.Size, ^uint64(4095)} {
		if err := c.HostRegister(address, memory); !errors.Is(err, abi.ErrInvalidValue) {
			t.Errorf("HostRegister at %#x of window %v: error %v, want %v", address, w.Window, err, abi.ErrInvalidValue)
		}
	}
	if err := c.HostRegister(w.Host().Base, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("HostRegister without memory: error %v, want %v", err, abi.ErrInvalidValue)
	}
}

// TestHostMemoryReservation checks that a kernel that a program enqueues on
// memory that it has unregistered may fail, but never accesses what is mapped at the
// address then: nothing is unmapped while a kernel may use it.
func TestHostMemoryReservation(t *testing.T) {
	w := drivertest.Window(t, abi.MinWindow)
	for round := range 40 {
		c := newContextIn(t, w)
		k := loadKernels(t, c, drivertest.Kernels)
		fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
		if err == nil {
			err = unix.Ftruncate(fd, 8192)
		}
		if err != nil {
			t.Fatal(err)
		}
		address := w.Host().Base + 1<<20
		m, err := w.Place(address, []shm.Extent{{FD: fd, Length: 8192}})
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		a, errA := c.StreamCreate(worker.StreamNonBlocking, 0)
		b, errB := c.StreamCreate(worker.StreamNonBlocking, 0)
		err = errors.Join(errA, errB, c.HostRegister(address, m.Bytes(0, 8192)),
			c.Launch(a, k["delay"], one(address, 1, uint64(2000*(round%5))), nil))
		gone := make(chan error, 1)
		err = errors.Join(err, c.HostUnregister(address, func() { gone <- w.Remove(address, m) }))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = c.Launch(b, k["delay"], one(address+8, 2, 3000), nil) // refused after the context has failed
		}
		if err := patience.Receive(t, time.Minute, "the memory is free", gone); err != nil {
			t.Fatal(err)
		}
		if err := settled(t, c); err != nil && !errors.Is(err, abi.ErrIllegalAddress) {
			t.Fatal(err)
		}
		if err := c.Destroy(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManagedVariables checks that managed variables are listed, are then placed where
// the guest has memory for them, and are initialized once.
func TestManagedVariables(t *testing.T) {
	const src = ".version 6.0\n.target sm_50\n.address_size 64\n.global .attribute(.managed) .align 4 .u32 a = 7;\n.global .u32 own = 9;\n" +
		".global .attribute(.managed) .align 8 .u64 b[40] = {1, a};\n.visible .entry k() { .reg .u32 %v; ld.global.u32 %v, [a]; add.u32 %v, %v, 1; st.global.u32 [a], %v; ret; }"
	w := drivertest.Window(t, abi.MinWindow)
	address, device, guest := drivertest.HostMemory(t, w, 0)
	c := newContextIn(t, w)
	if err := c.HostRegister(address, device); err != nil {
		t.Fatal(err)
	}
	_, _, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{})
	want := []abi.GlobalInfo{{Name: "a", Size: 4}, {Name: "b", Size: 320}}
	if !errors.Is(err, abi.ErrNotSupported) || !slices.Equal(info.Globals, want) {
		t.Fatalf("load without managed memory: error %v, variables %+v; want %v and %+v", err, info.Globals, abi.ErrNotSupported, want)
	}
	small := &worker.ManagedMemory{Base: address, Bytes: device[:abi.ManagedAlign+319]}
	if _, _, _, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{Managed: small}); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("load with one byte too few: error %v, want %v", err, abi.ErrInvalidValue)
	}
	for i, fresh := range []bool{true, false} {
		managed := &worker.ManagedMemory{Base: address, Bytes: device[:1024], Fresh: fresh}
		_, f, info, err := c.ModuleLoad([]byte(src), worker.ModuleOptions{Managed: managed})
		if err != nil {
			t.Fatalf("load module: %v\n%s", err, info.ErrorLog)
		}
		if g := info.Globals; len(g) != 3 || g[0].Address != address || g[2].Address != address+abi.ManagedAlign {
			t.Errorf("variables = %+v, want a at %#x and b at %#x", g, address, address+abi.ManagedAlign)
		}
		if err := errors.Join(c.Launch(nil, f[0], one(), nil), settled(t, c)); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(guest); got != uint32(8+i) {
			t.Errorf("a = %d after %d launches, want %d", got, i+1, 8+i)
		}
	}
	if got := binary.LittleEndian.Uint64(guest[abi.ManagedAlign+8:]); got != address {
		t.Errorf("b[1] = %#x, want the address of a, %#x", got, address)
	}
}
