package soft_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// onEachModel calls test with a device of every model that has loaded src.
func onEachModel(t *testing.T, o device.Options, src string, test func(t *testing.T, m model.Model, r *rig)) {
	for _, name := range append(model.Names(), "") {
		t.Run("model="+name, func(t *testing.T) {
			m, err := model.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			o.Model, o.VRAM = m, 64<<20
			test(t, m, newRigOf(t, o, src))
		})
	}
}

// TestOccupancyFollowsTheModel checks that a block can have the shared memory of its
// model and no more, and that the occupancy is within the limits of a multiprocessor.
func TestOccupancyFollowsTheModel(t *testing.T) {
	const last = ptxHead + `.extern .shared .align 4 .b8 s[];
.visible .entry k(.param .u64 out, .param .u32 at)
{
	.reg .b64 %rd<3>; .reg .b32 %r<5>;
	ld.param.u64 %rd1, [out];
	ld.param.u32 %r1, [at];
	mov.u32 %r2, s;
	add.u32 %r2, %r2, %r1;
	st.shared.u32 [%r2], 7;
	ld.shared.u32 %r3, [%r2];
	st.global.u32 [%rd1], %r3;
	ret;
}`
	onEachModel(t, device.Options{}, last, func(t *testing.T, m model.Model, r *rig) {
		f, most := r.funcs["k"], int32(m.BlockShared)
		if err := r.c.FuncSetAttribute(f, 8, most+1); !errors.Is(err, abi.ErrInvalidValue) {
			t.Errorf("FuncSetAttribute with %d bytes of shared memory: error %v, want %v", most+1, err, abi.ErrInvalidValue)
		}
		if err := r.c.FuncSetAttribute(f, 8, most); err != nil {
			t.Fatal(err)
		}
		out := r.buffer(make([]byte, 4))
		params := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, out), uint32(most)-4)
		one := [3]uint32{1, 1, 1}
		if err := r.c.Launch(nil, f, worker.Launch{Grid: one, Block: one, Shared: uint32(most), Params: params}, nil); err != nil {
			t.Fatal(err)
		}
		r.expect(out, 1, func(int) uint32 { return 7 })
		for _, c := range []struct {
			threads int32
			shared  int
			want    int
		}{
			{32, 0, m.Blocks},
			{1024, 0, m.Threads / 1024},
			{32, m.BlockShared, 1},
			{32, m.BlockShared + 1, 0},
			{32, m.SharedBytes/2 - m.ReservedShared, 2},
		} {
			if n, err := r.c.OccupancyMaxActiveBlocksPerMultiprocessor(f, c.threads, uint64(c.shared)); err != nil || int(n) != c.want {
				t.Errorf("occupancy = %d blocks of %d threads with %d bytes, error %v; want %d", n, c.threads, c.shared, err, c.want)
			}
		}
		if n, err := r.c.OccupancyAvailableDynamicSMemPerBlock(f, 2, 32); err != nil || int(n) != m.SharedBytes/2-m.ReservedShared {
			t.Errorf("available shared memory for two blocks = %d bytes each, error %v; want %d", n, err, m.SharedBytes/2-m.ReservedShared)
		}
	})
}

// TestClockRate checks that %clock counts cycles of the clock of CLOCK_RATE, and
// %globaltimer nanoseconds.
func TestClockRate(t *testing.T) {
	const read = ptxHead + `.visible .entry k(.param .u64 out)
{
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	mov.u64 %rd2, %globaltimer;
	mov.u64 %rd3, %clock64;
	st.global.u64 [%rd1], %rd2;
	st.global.u64 [%rd1+8], %rd3;
	ret;
}`
	at := time.Unix(1000, 500)
	onEachModel(t, device.Options{Clock: func() time.Time { return at }}, read, func(t *testing.T, m model.Model, r *rig) {
		out := r.buffer(make([]byte, 16))
		one := [3]uint32{1, 1, 1}
		if err := r.c.Launch(nil, r.funcs["k"], worker.Launch{Grid: one, Block: one, Params: binary.LittleEndian.AppendUint64(nil, out)}, nil); err != nil {
			t.Fatal(err)
		}
		got, err := r.read(out, 16)
		if err != nil {
			t.Fatal(err)
		}
		nanos, cycles := binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(got[8:])
		if want := nanos/1000*uint64(m.Clock) + uint64(m.Clock)/2; nanos != uint64(at.UnixNano()) || cycles != want {
			t.Errorf("%%clock64 = %d at %%globaltimer = %d ns, want %d at %d ns", cycles, nanos, want, at.UnixNano())
		}
	})
}
