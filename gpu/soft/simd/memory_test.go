package simd_test

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// pattern returns the addresses of a warp for accesses of size bytes.
func pattern(r *rand.Rand, base, size uint64, n int) []uint64 {
	v := make([]uint64, 32)
	at := base + uint64(r.Intn(n))&^(size-1)
	for i := range v {
		v[i] = at
	}
	switch kind := r.Intn(9); kind {
	case 0: // one address
	case 1, 2: // consecutive
		for i := range v {
			v[i] += uint64(i) * size
		}
	case 3: // with a stride, ascending or descending
		step := uint64(r.Intn(9)-4) * size
		for i := range v {
			v[i] += uint64(i) * step
		}
	case 4: // consecutive except for one lane in the middle
		for i := range v {
			v[i] += uint64(i) * size
		}
		v[1+r.Intn(30)] += size
	case 5: // far outside
		for i := range v {
			v[i] = r.Uint64() &^ (size - 1)
		}
	case 6: // most groups of eight as above
		for i := range v {
			v[i] = base + uint64(r.Intn(n))&^(size-1)
			if i%8 > 0 && r.Intn(40) > 0 {
				v[i] = v[i-1] + size*(at/size/uint64(i/8+1)%2)
			}
		}
	default: // random
		for i := range v {
			v[i] = base + uint64(r.Intn(n))&^(size-1)
		}
	}
	if r.Intn(4) == 0 { // and an invalid one
		l := r.Intn(32)
		v[l] = []uint64{v[l] + 1, base + uint64(n), base + uint64(n) - size, base - size, v[l] ^ 1<<63, v[l] + 1<<32, 0}[r.Intn(7)]
	}
	return v
}

// inside reports whether all values are in n bytes, each at a multiple of its size.
func inside(addrs []uint64, from uint64, size, n int) bool {
	for _, a := range addrs {
		if o := a + from; o%uint64(size) != 0 || o >= uint64(n) || uint64(n)-o < uint64(size) {
			return false
		}
	}
	return true
}

func read(data []byte, o uint64, size int) uint64 {
	if size == 4 {
		return uint64(binary.LittleEndian.Uint32(data[o:]))
	}
	return binary.LittleEndian.Uint64(data[o:])
}

// memoryCase is data with bytes around it that must not be changed.
type memoryCase struct {
	all, data []byte
	addrs     []uint64
	from      uint64
	size      int
}

func newMemoryCase(r *rand.Rand, size int) *memoryCase {
	n := []int{0, size - 1, size, size + 1, 32 * size, 32*size - 1, 1024, 4099}[r.Intn(8)]
	all := make([]byte, n+512)
	r.Read(all)
	base := uint64(r.Intn(3)) << 40
	c := &memoryCase{all: all, data: all[256:][:n:n], from: -base, size: size}
	if off := uint64(r.Intn(64)); r.Intn(2) == 0 {
		c.from += off * uint64(size)
		base -= off * uint64(size)
	}
	for range 1 + r.Intn(4) {
		c.addrs = append(c.addrs, pattern(r, base, uint64(size), max(n, 1))...)
	}
	return c
}

// right returns how many warps, from the first on, are inside, and with ascending have
// ascending offsets.
func (c *memoryCase) right(ascending bool) int {
	for w := range len(c.addrs) / 32 {
		a := c.addrs[w*32:][:32]
		if !inside(a, c.from, c.size, len(c.data)) {
			return w
		}
		for l := range a[1:] {
			if ascending && a[l+1]+c.from <= a[l]+c.from {
				return w
			}
		}
	}
	return len(c.addrs) / 32
}

func TestLoads(t *testing.T) {
	if !simd.Available() {
		return
	}
	r := rand.New(rand.NewSource(7))
	for range 12000 {
		c := newMemoryCase(r, 4+4*r.Intn(2))
		want, before := c.right(false), slices.Clone(c.all)
		var got int
		values := make([]uint64, len(c.addrs))
		if c.size == 4 {
			d := make([]uint32, len(c.addrs))
			got = simd.Load32(d, c.addrs, c.from, c.data)
			for i, v := range d {
				values[i] = uint64(v)
			}
		} else if r.Intn(2) == 0 {
			got = simd.Load64(values, c.addrs, c.from, c.data)
		} else { // to the register of the addresses
			copy(values, c.addrs)
			got = simd.Load64(values, values, c.from, c.data)
			copy(values[got*32:], make([]uint64, len(values))) // the other warps stay addresses
		}
		if got != want || !bytes.Equal(before, c.all) {
			t.Fatalf("load of %d bytes each at %#x + %#x of %d: %d warps, want %d and memory unchanged", c.size, c.addrs, c.from, len(c.data), got, want)
		}
		for i, v := range values {
			x := uint64(0)
			if i < want*32 {
				x = read(c.data, c.addrs[i]+c.from, c.size)
			}
			if v != x {
				t.Fatalf("load of %d bytes each at %#x + %#x of %d: lane %d = %#x, want %#x", c.size, c.addrs, c.from, len(c.data), i, v, x)
			}
		}
	}
}

func TestStores(t *testing.T) {
	if !simd.Available() {
		return
	}
	r := rand.New(rand.NewSource(8))
	stored := 0
	for range 12000 {
		c := newMemoryCase(r, 4+4*r.Intn(2))
		want, after := c.right(true), slices.Clone(c.all)
		v32, v64 := make([]uint32, len(c.addrs)), make([]uint64, len(c.addrs))
		for i := range v32 {
			v64[i] = r.Uint64()
			v32[i] = uint32(v64[i])
			if o := 256 + c.addrs[i] + c.from; i >= want*32 {
				continue
			} else if c.size == 4 {
				binary.LittleEndian.PutUint32(after[o:], v32[i])
			} else {
				binary.LittleEndian.PutUint64(after[o:], v64[i])
			}
		}
		stored += want
		var got int
		if c.size == 4 {
			got = simd.Store32(v32, c.addrs, c.from, c.data)
		} else {
			got = simd.Store64(v64, c.addrs, c.from, c.data)
		}
		if got != want || !bytes.Equal(after, c.all) {
			t.Fatalf("store of %d bytes each to %#x + %#x of %d: %d warps, want %d and the memory after these", c.size, c.addrs, c.from, len(c.data), got, want)
		}
	}
	if stored < 500 {
		t.Errorf("cases store for %d warps, want at least 500", stored)
	}
}

func TestSelect(t *testing.T) {
	if !simd.Available() {
		return
	}
	r := rand.New(rand.NewSource(9))
	for round := range 500 {
		p, not := make(ops.Predicate, 1+round%9), uint32(0)-uint32(round%2)
		n := 32 * len(p)
		a32, b32, a64, b64 := make([]uint32, n), make([]uint32, n), make([]uint64, n), make([]uint64, n)
		for i := range p {
			p[i] = r.Uint32() & r.Uint32()
		}
		want32, want64 := make([]uint32, n), make([]uint64, n)
		for i := range n {
			a32[i], b32[i], a64[i], b64[i] = r.Uint32(), r.Uint32(), r.Uint64(), r.Uint64()
			want32[i], want64[i] = b32[i], b64[i]
			if (p[i/32]^not)>>(i%32)&1 != 0 {
				want32[i], want64[i] = a32[i], a64[i]
			}
		}
		d32, d64 := [][]uint32{a32, b32, make([]uint32, n)}[r.Intn(3)], [][]uint64{a64, make([]uint64, n)}[r.Intn(2)]
		simd.Select32(d32, a32, b32, p, not)
		simd.Select64(d64, a64, b64, p, not)
		if !slices.Equal(d32, want32) || !slices.Equal(d64, want64) {
			t.Fatalf("Select32 and Select64 by %x, XOR %x = %x and %x, want %x and %x", p, not, d32, d64, want32, want64)
		}
		simd.Fill32(d32, 0x80000001)
		simd.Fill64(b64, 1<<63+5)
		if slices.ContainsFunc(d32, func(v uint32) bool { return v != 0x80000001 }) || slices.ContainsFunc(b64, func(v uint64) bool { return v != 1<<63+5 }) {
			t.Fatalf("Fill32 and Fill64 = %x and %x, want %#x and %#x in all lanes", d32, b64, uint32(0x80000001), uint64(1<<63+5))
		}
		simd.Plus64(d64, want64, 1<<63+3)
		for i, v := range d64 {
			if v != want64[i]+1<<63+3 {
				t.Fatalf("Plus64 of %#x = %#x, want %#x", want64[i], v, want64[i]+1<<63+3)
			}
		}
	}
}
