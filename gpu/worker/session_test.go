package worker_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

const vram = 64 << 20

// rig is a session with a guest in it.
type rig struct {
	testing.TB
	*guesttest.Guest
	driver *fakedriver.Driver
	host   *worker.LocalHost
	ended  chan error
}

func newRig(t testing.TB, o fakedriver.Options, flags uint32) *rig {
	t.Helper()
	d := fakedriver.New(o)
	return newRigOn(t, d, d, flags)
}

// newRigOn returns a rig on a driver that is fake or wraps it.
func newRigOn(t testing.TB, d worker.Driver, fake *fakedriver.Driver, flags uint32) *rig {
	t.Helper()
	return newRigOf(t, d, fake, flags, worker.Options{}, func(*worker.LocalHost) {})
}

// newRigOf is like newRigOn with options, and with a host that is prepared before the
// session has it.
func newRigOf(t testing.TB, d worker.Driver, fake *fakedriver.Driver, flags uint32, o worker.Options, prepare func(*worker.LocalHost)) *rig {
	t.Helper()
	r := &rig{TB: t, driver: fake, ended: make(chan error, 1)}
	r.host = worker.NewLocalHost(worker.Limits{Name: "Basalt vGPU", UUID: [16]byte{9}, VRAM: vram})
	prepare(r.host)
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	s, err := worker.NewSession(b, d, r.host, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { r.ended <- s.Run(ctx) }()
	r.Guest, err = guesttest.Dial(a, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		cancel()
		r.end()
	})
	return r
}

// end waits for the session's end and checks that nothing is left behind.
func (r *rig) end() error {
	r.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		if used := r.driver.Used(); used != 0 {
			r.Errorf("%d bytes of device memory in use after the session's end, want 0", used)
		}
		if free, _, _ := r.host.Memory(); free != vram {
			r.Errorf("%d of %d bytes free at the host after the session's end, want all", free, vram)
		}
		if r.host.Leased() {
			r.Error("a lease is held after the session's end")
		}
		return err
	case <-time.After(30 * time.Second):
		r.Fatal("the session did not end within 30s")
		return nil
	}
}

func (r *rig) call(op abi.Op, a guesttest.Args) (v0, v1 uint64) {
	r.Helper()
	v0, v1, err := r.Call(op, a, nil)
	if err != nil {
		r.Fatalf("call %v: %v", op, err)
	}
	return v0, v1
}

func (r *rig) fails(want abi.Result, op abi.Op, a guesttest.Args) {
	r.Helper()
	if _, _, err := r.Call(op, a, nil); !errors.Is(err, want) {
		r.Errorf("call %v: %v, want %v", op, err, want)
	}
}

func (r *rig) context() uint64 {
	r.Helper()
	h := r.Handle()
	r.call(abi.OpCtxCreate, abi.CtxCreate{Ctx: h})
	return h
}

// module loads kernels and returns the handles of module and first function.
func (r *rig) module(ctx uint64, image string) (module, function uint64) {
	r.Helper()
	module, function = r.Handle(), r.Handles(16)
	arena := r.Shm.Bytes(r.Arena, r.Layout.ChunkSize)
	copy(arena, image)
	r.call(abi.OpModuleLoad, abi.ModuleLoad{
		Ctx: ctx, Module: module, FirstFunction: function,
		ImageOff: r.Arena, ImageLen: uint64(len(image)), OutOff: r.Arena + r.Layout.ChunkSize, OutLen: r.Layout.ChunkSize,
	})
	return module, function
}

func (r *rig) launch(stream, function uint64, params ...uint64) error {
	var b []byte
	for _, p := range params {
		b = binary.LittleEndian.AppendUint64(b, p)
	}
	return r.Send(abi.OpLaunch, abi.Launch{Stream: stream, Function: function, GridX: 1, GridY: 1, GridZ: 1, BlockX: 1, BlockY: 1, BlockZ: 1}, b)
}

func TestDeviceInfoIsTheVGPU(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	n, _ := r.call(abi.OpDeviceInfo, abi.DeviceInfo{OutOff: r.Arena, OutLen: 4096})
	info, err := abi.DecodeDeviceInfoReply(r.Shm.Bytes(r.Arena, n))
	if err != nil || info.TotalMemory != vram || info.Name != "Basalt vGPU" || info.UUID != [16]byte{9} || info.CUDAVersion != 12040 {
		t.Errorf("device info = %+v, %v, want the vGPU's name, UUID, %d bytes and CUDA 12.4", info, err, vram)
	}
	v0, _, err := r.Call(abi.OpDeviceInfo, abi.DeviceInfo{OutOff: r.Arena, OutLen: 8}, nil)
	if !errors.Is(err, abi.ErrInvalidValue) || v0 != n {
		t.Errorf("device info into 8 bytes: %d bytes needed, %v; want %d, %v", v0, err, n, abi.ErrInvalidValue)
	}
	n, _ = r.call(abi.OpVGPUStatus, abi.VGPUStatus{OutOff: r.Arena, OutLen: 4096})
	if status, err := abi.DecodeVGPUStatusReply(r.Shm.Bytes(r.Arena, n)); err != nil || status.VRAMLimit != vram {
		t.Errorf("status = %+v, %v, want a limit of %d bytes", status, err, vram)
	}
}

func TestCopiesThroughEveryPath(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	const n = 100_000
	address, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: n})
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i * 7)
	}

	// Through the arena; the worker frees the chunks.
	copy(r.Shm.Bytes(r.Arena, n), want)
	r.Shm.Store32(r.ChunkState, abi.ChunkBusy)
	r.Shm.Store32(r.ChunkState+4, abi.ChunkBusy)
	r.Shm.Store32(r.ChunkState+8, abi.ChunkBusy)
	if _, _, err := r.CallFlags(abi.OpCopyHtoD, abi.FlagReleaseChunks, abi.CopyHtoD{Stream: ctx, Dst: address, SrcOff: r.Arena, SrcLen: n}, nil); err != nil {
		t.Fatal(err)
	}
	if a, b, c := r.Shm.Load32(r.ChunkState), r.Shm.Load32(r.ChunkState+4), r.Shm.Load32(r.ChunkState+8); a != abi.ChunkFree || b != abi.ChunkFree || c != abi.ChunkBusy {
		t.Errorf("chunk states = %d, %d and %d, want only the third busy", a, b, c)
	}

	// Inline, then back into a separate region that is used immediately after its
	// announcement.
	if err := r.Send(abi.OpCopyHtoDInline, abi.CopyHtoDInline{Stream: ctx, Dst: address + 10}, []byte("inline")); err != nil {
		t.Fatal(err)
	}
	copy(want[10:], "inline")
	region, err := r.Region(3, 128<<10)
	if err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: address, DstOff: 4096, DstLen: n, DstRegion: 3})
	if !bytes.Equal(region.Bytes(4096, n), want) {
		t.Error("the bytes copied back differ from those copied to the device")
	}
	if err := r.Drop(3); err != nil {
		t.Fatal(err)
	}

	r.call(abi.OpMemset, abi.Memset{Stream: ctx, Dst: address, Count: 4, Value: 0x01020304, Width: 4})
	r.call(abi.OpCopyDtoD, abi.CopyDtoD{Stream: ctx, Dst: address + 1000, Src: address, Size: 16})
	r.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: address + 1000, DstOff: r.Arena, DstLen: 16})
	if got := r.Shm.Bytes(r.Arena, 16); !bytes.Equal(got, bytes.Repeat([]byte{4, 3, 2, 1}, 4)) {
		t.Errorf("bytes after the memset = % x, want 04 03 02 01 repeated", got)
	}
	r.Close()
	if err := r.end(); err != nil {
		t.Errorf("session ended with %v, want no error", err)
	}
	if got := r.host.Totals(); got.BytesToDevice != n+6 || got.BytesFromDevice != n+16 {
		t.Errorf("totals = %+v, want %d bytes to the device and %d from it", got, n+6, n+16)
	}
}

// TestImageInfo checks that the kernels of an image can be queried without a
// context, and that nothing stays loaded.
func TestImageInfo(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	const image = "store delay"
	region, err := r.Region(1, 4096)
	if err != nil {
		t.Fatal(err)
	}
	copy(region.Bytes(0, 4096), image)
	a := abi.ImageInfo{ImageLen: uint64(len(image)), ImageRegion: 1, OutOff: r.Arena, OutLen: r.Layout.ChunkSize}
	n, _ := r.call(abi.OpImageInfo, a)
	info, err := abi.DecodeModuleInfo(r.Shm.Bytes(r.Arena, n))
	if err != nil || len(info.Functions) != 2 || info.Functions[1].Name != "delay" {
		t.Errorf("info = %+v, %v; want kernels store and delay", info, err)
	}
	small := a
	small.OutLen = 16
	if needed, _, err := r.Call(abi.OpImageInfo, small, nil); !errors.Is(err, abi.ErrInvalidValue) || needed != n {
		t.Errorf("record that does not fit: %v, %d bytes needed, want %v and %d", err, needed, abi.ErrInvalidValue, n)
	}
	for _, bad := range []struct {
		want abi.Result
		args abi.ImageInfo
	}{
		{abi.ErrInvalidImage, abi.ImageInfo{ImageLen: abi.MaxModuleImage + 1}},
		{abi.ErrInvalidValue, abi.ImageInfo{ImageOff: 4090, ImageLen: 7, ImageRegion: 1}},
		{abi.ErrInvalidValue, abi.ImageInfo{ImageLen: 1, ImageRegion: 7}},
		{abi.ErrInvalidValue, abi.ImageInfo{ImageLen: 1, OutOff: 1 << 63, OutLen: 8}},
	} {
		r.fails(bad.want, abi.OpImageInfo, bad.args)
	}
	if err := r.Drop(1); err != nil {
		t.Fatal(err)
	}
	if used := r.driver.Used(); used != 0 {
		t.Errorf("%d bytes of device memory in use, want 0", used)
	}
}

func TestLaunchesStreamsAndEvents(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	module, f := r.module(ctx, "nop sleep store")
	address, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 8})
	stream, start, end := r.Handle(), r.Handle(), r.Handle()
	for _, err := range []error{
		r.Send(abi.OpStreamCreate, abi.StreamCreate{Ctx: ctx, Stream: stream, Flags: worker.StreamNonBlocking}, nil),
		r.Send(abi.OpEventCreate, abi.EventCreate{Ctx: ctx, Event: start}, nil),
		r.Send(abi.OpEventCreate, abi.EventCreate{Ctx: ctx, Event: end}, nil),
		r.Send(abi.OpEventRecord, abi.EventRecord{Event: start, Stream: stream}, nil),
		r.launch(stream, f+1, uint64(50*time.Millisecond)),
		r.launch(stream, f+2, address, 42),
		r.Send(abi.OpEventRecord, abi.EventRecord{Event: end, Stream: stream}, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.fails(abi.ErrNotReady, abi.OpStreamQuery, abi.StreamQuery{Stream: stream})
	r.fails(abi.ErrNotReady, abi.OpEventQuery, abi.EventQuery{Event: end})
	r.call(abi.OpEventSynchronize, abi.EventSynchronize{Event: end})
	r.call(abi.OpStreamQuery, abi.StreamQuery{Stream: stream})
	r.call(abi.OpEventElapsedTime, abi.EventElapsedTime{HStart: start, HEnd: end})
	r.call(abi.OpStreamWaitEvent, abi.StreamWaitEvent{Stream: ctx, Event: end})
	r.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: address, DstOff: r.Arena, DstLen: 8})
	if got := r.Shm.Load64(r.Arena); got != 42 {
		t.Errorf("value that the kernel stored = %d, want 42", got)
	}
	if v0, _ := r.call(abi.OpOccupancyMaxActiveBlocksPerMultiprocessor, abi.OccupancyMaxActiveBlocksPerMultiprocessor{Func: f, BlockSize: 256}); v0 != 8 {
		t.Errorf("occupancy = %d, want 8", v0)
	}
	r.call(abi.OpFuncSetAttribute, abi.FuncSetAttribute{Function: f})
	r.call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: stream})
	r.call(abi.OpEventDestroy, abi.EventDestroy{Event: start})
	r.call(abi.OpStreamDestroy, abi.StreamDestroy{Stream: stream})
	r.call(abi.OpModuleUnload, abi.ModuleUnload{Module: module})
	r.fails(abi.ErrInvalidHandle, abi.OpOccupancyMaxActiveBlocksPerMultiprocessor, abi.OccupancyMaxActiveBlocksPerMultiprocessor{Func: f, BlockSize: 1})
	r.call(abi.OpCtxSynchronize, abi.CtxSynchronize{Ctx: ctx})
	r.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ctx})
	r.fails(abi.ErrInvalidHandle, abi.OpEventQuery, abi.EventQuery{Event: end})
	r.Close()
	r.end()
	if got := r.host.Totals(); got.Launches != 2 || got.GPUNanos < uint64(50*time.Millisecond) {
		t.Errorf("totals = %+v, want 2 launches and at least 50 ms", got)
	}
}
