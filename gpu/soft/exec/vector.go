package exec

import (
	mathbits "math/bits"
	"os"
	"reflect"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// useVectors is whether programs that are compiled from now on use package simd.
// BASALT_SOFT_VECTORS=off in the environment disables it, for comparisons.
var useVectors atomic.Bool

func init() { useVectors.Store(simd.Available() && os.Getenv("BASALT_SOFT_VECTORS") != "off") }

// UseVectors sets whether programs that are compiled from now on use vector
// instructions, if the processor has them, and returns the previous value. It is for
// tests and benchmarks.
func UseVectors(on bool) (before bool) { return useVectors.Swap(on && simd.Available()) }

// vectorOf returns the loop of an operation: that of package simd if there is one, else
// its own.
func vectorOf(o ops.Operation) any {
	if !useVectors.Load() {
		return o.Loop
	}
	if o.Name == ops.PlusName && len(o.Constants) == 1 {
		delta := o.Constants[0]
		return func(d, a []uint64) { simd.Plus64(d, a, delta) }
	}
	if len(o.Constants) > 0 {
		return o.Loop
	}
	if f := simd.Find(o.Name); f != nil && reflect.TypeOf(f) == reflect.TypeOf(o.Loop) {
		return f
	}
	return o.Loop
}

// vectorOfConversion returns the loop of package simd of a conversion, or nil. Those
// loops write all 32 bits of the result.
func vectorOfConversion(o *ir.Convert) any {
	if !useVectors.Load() || o.D.Class != ir.Class32 || uint32(o.Keep) != 1<<32-1 {
		return nil
	}
	switch f := simd.Find("cvt." + o.F.String()).(type) {
	case func(d, a []uint32):
		if o.S.Class == ir.Class32 {
			return f
		}
	case func(d []uint32, a []uint64):
		if o.S.Class == ir.Class64 {
			return f
		}
	}
	return nil
}

// fullFrom returns how many warps from w on have all lanes active.
func fullFrom(act []uint32, w int) int {
	n := w
	for n < len(act) && act[n] == ^uint32(0) {
		n++
	}
	return n - w
}

// loadWide loads for warps whose lanes are all active, from w on, and returns for how
// many it has: those whose addresses, with from added, are in data.
func (m *machine) loadWide(a *access, addrs []uint64, from uint64, data []byte, d ir.Ref, act []uint32, w int) int {
	n := fullFrom(act, w)
	switch {
	case !m.p.vectors || n == 0:
	case a.Size == 4 && d.Class == ir.Class32:
		return simd.Load32(m.v32(d.Slot, w, w+n), addrs[w*ir.WarpSize:(w+n)*ir.WarpSize], from, data)
	case a.Size == 8 && d.Class == ir.Class64:
		return simd.Load64(m.v64(d.Slot, w, w+n), addrs[w*ir.WarpSize:(w+n)*ir.WarpSize], from, data)
	}
	return 0
}

// storeWide stores as loadWide loads, for warps whose addresses are also ascending, so
// that no two of their lanes store to the same address.
func (m *machine) storeWide(a *access, addrs []uint64, from uint64, data []byte, s ir.Ref, act []uint32, w int) int {
	n := fullFrom(act, w)
	switch {
	case !m.p.vectors || n == 0:
	case a.Size == 4 && s.Class == ir.Class32:
		return simd.Store32(m.v32(s.Slot, w, w+n), addrs[w*ir.WarpSize:(w+n)*ir.WarpSize], from, data)
	case a.Size == 8 && s.Class == ir.Class64:
		return simd.Store64(m.v64(s.Slot, w, w+n), addrs[w*ir.WarpSize:(w+n)*ir.WarpSize], from, data)
	}
	return 0
}

// widen converts the values of a register of 32 bits to 64.
var widen = func() func(d []uint64, a []uint32) {
	if f, ok := simd.Find("cvt.u64.u32").(func(d []uint64, a []uint32)); ok && simd.Available() {
		return f
	}
	return func(d []uint64, a []uint32) {
		for i, v := range a {
			d[i] = uint64(v)
		}
	}
}()

// offset returns the offset in data of a value of a lane. It is beyond the end if the
// value is not completely in data or is misaligned.
func (a *access) offset(addr, from uint64, data []byte) uint64 {
	o := addr + from
	if size := uint64(len(data)); o < size && size-o >= a.Size && o&(a.Size-1) == 0 {
		return o
	}
	return ^uint64(0)
}

// loadInside loads for some lanes of a warp, in order, as long as their addresses are
// in data, and returns the remaining lanes.
func (m *machine) loadInside(a *access, addrs []uint64, from uint64, data []byte, d ir.Ref, w int, lanes uint32) uint32 {
	if a.Space == ir.Local {
		return m.loadLocal(a, addrs, from, d, w, lanes)
	}
	if a.Size == 4 && d.Class == ir.Class32 {
		v, in, ad := m.v32(d.Slot, w, w+1)[:ir.WarpSize], words(data), addrs[:ir.WarpSize]
		for ; lanes != 0; lanes &= lanes - 1 {
			l := mathbits.TrailingZeros32(lanes)
			at := mathbits.RotateLeft64(ad[l]+from, -2) // huge if misaligned
			if at >= uint64(len(in)) {
				break
			}
			v[l] = in[at]
		}
		return lanes
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		l := mathbits.TrailingZeros32(lanes)
		o := a.offset(addrs[l], from, data)
		if o >= uint64(len(data)) {
			break
		}
		m.set(d, w*ir.WarpSize+l, readAs(data[o:], a)&a.Mask)
	}
	return lanes
}

// storeInside stores as loadInside loads.
func (m *machine) storeInside(a *access, addrs []uint64, from uint64, data []byte, s ir.Ref, w int, lanes uint32) uint32 {
	if a.Space == ir.Local {
		return m.storeLocal(a, addrs, from, s, w, lanes)
	}
	if a.Size == 4 && s.Class == ir.Class32 {
		v, in, ad := m.v32(s.Slot, w, w+1)[:ir.WarpSize], words(data), addrs[:ir.WarpSize]
		for ; lanes != 0; lanes &= lanes - 1 {
			l := mathbits.TrailingZeros32(lanes)
			at := mathbits.RotateLeft64(ad[l]+from, -2) // huge if misaligned
			if at >= uint64(len(in)) {
				break
			}
			in[at] = v[l]
		}
		return lanes
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		l := mathbits.TrailingZeros32(lanes)
		o := a.offset(addrs[l], from, data)
		if o >= uint64(len(data)) {
			break
		}
		writeAs(data[o:], a, m.get(s, w*ir.WarpSize+l))
	}
	return lanes
}

// fillWarps sets all lanes of some warps to one value.
func (m *machine) fillWarps(d ir.Ref, w0, w1 int, v uint64) {
	switch {
	case d.Class == ir.Class32 && m.p.vectors:
		simd.Fill32(m.v32(d.Slot, w0, w1), uint32(v))
	case d.Class == ir.Class32:
		fill(m.v32(d.Slot, w0, w1), uint32(v))
	case d.Class == ir.Class64 && m.p.vectors:
		simd.Fill64(m.v64(d.Slot, w0, w1), v)
	case d.Class == ir.Class64:
		fill(m.v64(d.Slot, w0, w1), v)
	}
}

// updateAlone executes an atomic operation on words that no other block accesses for
// some lanes of a warp, in order, as long as their addresses are in data, and returns
// the remaining lanes.
func (m *machine) updateAlone(o atomicOp, addrs []uint64, from uint64, data []byte, w int, lanes uint32) uint32 {
	if o.Size != 4 || o.B.Class != ir.Class32 || o.D.Class == ir.Class64 {
		return lanes
	}
	f, in, ad, b := o.F, words(data), addrs[:ir.WarpSize], m.v32(o.B.Slot, w, w+1)[:ir.WarpSize]
	changed := false
	for ; lanes != 0; lanes &= lanes - 1 {
		l := mathbits.TrailingZeros32(lanes)
		at := mathbits.RotateLeft64(ad[l]+from, -2) // huge if misaligned
		if at >= uint64(len(in)) {
			break
		}
		c := uint64(0)
		if o.C.Class != ir.ClassNone {
			c = m.get(o.C, w*ir.WarpSize+l)
		}
		old := in[at]
		now := uint32(f(uint64(old), uint64(b[l]), c))
		in[at] = now
		changed = changed || now != old
		m.set(o.D, w*ir.WarpSize+l, uint64(old))
	}
	if changed {
		m.did |= didChange
	}
	return lanes
}

// localWord returns the offset of a word of a lane's local memory in that of all lanes.
// It is beyond the end if the word is not completely in the lane's part or is
// misaligned.
func (m *machine) localWord(a *access, addr uint64, l int) int {
	o := addr & a.reach
	if stride := uint64(m.stride); o >= stride || stride-o < a.Size || o&(a.Size-1) != 0 {
		return len(m.local)
	}
	return l*int(m.stride) + int(o)
}

// loadLocal loads for some lanes of a warp from their local memory, as loadInside does.
func (m *machine) loadLocal(a *access, addrs []uint64, off uint64, d ir.Ref, w int, lanes uint32) uint32 {
	for ; lanes != 0; lanes &= lanes - 1 {
		l := mathbits.TrailingZeros32(lanes)
		at := m.localWord(a, addrs[l]+off, w*ir.WarpSize+l)
		if at >= len(m.local) {
			break
		}
		m.set(d, w*ir.WarpSize+l, readAs(m.local[at:], a)&a.Mask)
	}
	return lanes
}

// storeLocal stores as loadLocal loads.
func (m *machine) storeLocal(a *access, addrs []uint64, off uint64, s ir.Ref, w int, lanes uint32) uint32 {
	for ; lanes != 0; lanes &= lanes - 1 {
		l := mathbits.TrailingZeros32(lanes)
		at := m.localWord(a, addrs[l]+off, w*ir.WarpSize+l)
		if at >= len(m.local) {
			break
		}
		writeAs(m.local[at:], a, m.get(s, w*ir.WarpSize+l))
	}
	return lanes
}
