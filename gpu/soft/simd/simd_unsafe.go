//go:build amd64

package simd

import (
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"golang.org/x/sys/cpu"
)

// Available reports whether this processor and the kernel support the package.
func Available() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// Find returns the loop of an operation of ops.txt, of the type of its Go loop, or nil.
func Find(name string) any { return loops[name] }

// Load32 loads registers of 32 bits from data for as many warps as possible, and
// returns their number. The offset of each lane is its address plus from. It stops
// before the first warp with an offset outside of data or misaligned, of which it loads
// nothing. A warp whose lanes have one address loads once. d has a lane for each
// address.
func Load32(d []uint32, addrs []uint64, from uint64, data []byte) int {
	return access(load32, d, addrs, from, data)
}

// Load64 is Load32 for registers of 64 bits; d may be the register of the addresses.
func Load64(d, addrs []uint64, from uint64, data []byte) int {
	return access(load64, d, addrs, from, data)
}

// Store32 stores registers of 32 bits as Load32 loads them. It also stops before a warp
// whose addresses are not ascending, because lanes may have the same address then.
func Store32(v []uint32, addrs []uint64, from uint64, data []byte) int {
	return access(store32, v, addrs, from, data)
}

// Store64 is Store32 for registers of 64 bits.
func Store64(v, addrs []uint64, from uint64, data []byte) int {
	return access(store64, v, addrs, from, data)
}

const warp = 32

// access calls a function of memory_amd64.s, if the slices are long enough.
func access[T uint32 | uint64](f func(*T, *uint64, int, uint64, *byte, uint64) int, reg []T, addrs []uint64, from uint64, data []byte) int {
	size := int(unsafe.Sizeof(reg[0]))
	warps := len(addrs) / warp
	if warps == 0 || len(data) < size {
		return 0
	}
	_ = reg[warps*warp-1]
	return f(&reg[0], &addrs[0], warps, from, &data[0], uint64(len(data)-size))
}

// Select32 sets each lane to the value of a if its bit of p, after XOR with not, is
// set, and to that of b otherwise. d may be a or b.
func Select32(d, a, b []uint32, p ops.Predicate, not uint32) {
	choose(select32, d, a, b, p, not)
}

// Select64 is Select32 for registers of 64 bits.
func Select64(d, a, b []uint64, p ops.Predicate, not uint32) {
	choose(select64, d, a, b, p, not)
}

func choose[T uint32 | uint64](f func(d, a, b *T, p *uint32, warps int, not uint32), d, a, b []T, p ops.Predicate, not uint32) {
	if len(p) == 0 {
		return
	}
	last := len(p)*warp - 1
	_, _, _ = d[last], a[last], b[last]
	f(&d[0], &a[0], &b[0], &p[0], len(p), not)
}

// Fill32 sets all lanes to one value.
func Fill32(d []uint32, v uint32) {
	if len(d) > 0 {
		fill32(&d[0], len(d)/warp, v)
	}
}

// Fill64 is Fill32 for registers of 64 bits.
func Fill64(d []uint64, v uint64) {
	if len(d) > 0 {
		fill64(&d[0], len(d)/warp, v)
	}
}

//go:noescape
func fill32(d *uint32, warps int, v uint32)

//go:noescape
func fill64(d *uint64, warps int, v uint64)

// Plus64 adds delta to every lane. d may be a.
func Plus64(d, a []uint64, delta uint64) {
	if len(d) == 0 {
		return
	}
	_ = a[len(d)-1]
	plus64(&d[0], &a[0], len(d)/warp, delta)
}

//go:noescape
func plus64(d, a *uint64, warps int, delta uint64)

//go:noescape
func load32(reg *uint32, addrs *uint64, warps int, from uint64, data *byte, highest uint64) (done int)

//go:noescape
func load64(reg *uint64, addrs *uint64, warps int, from uint64, data *byte, highest uint64) (done int)

//go:noescape
func store32(reg *uint32, addrs *uint64, warps int, from uint64, data *byte, highest uint64) (done int)

//go:noescape
func store64(reg *uint64, addrs *uint64, warps int, from uint64, data *byte, highest uint64) (done int)

//go:noescape
func select32(d, a, b *uint32, p *uint32, warps int, not uint32)

//go:noescape
func select64(d, a, b *uint64, p *uint32, warps int, not uint32)
