package soft_test

import (
	"encoding/binary"
	"slices"
	"testing"
)

// tileCases are kernels of groups of threads that are smaller than a warp.
var tileCases = []kernelCase{
	{file: "tile", name: "tiles", elem: 4, blocks: []int{32, 48, 64, 256}, ref: ofWarps(func(x, y, out []int32) {
		addTiles(out, x, y, 2, 1)
		addTiles(out, x, y, 4, 3)
		addTiles(out, x, y, 8, 5)
		addTiles(out, x, y, 16, 7)
	})},
	{file: "tile", name: "tilesapart", elem: 4, blocks: []int{32, 48, 64, 256}, ref: func(a, b []byte, n, block int) []byte {
		x, y, out := i32s(a), i32s(b), make([]int32, n)
		for i := 0; i < n; i += 16 {
			x, y, out := x[i:i+16], y[i:i+16], out[i:i+16]
			if i%block/16&1 == 0 {
				addTiles(out, y, x, 16, 1)
				addTiles(out, x, y, 8, 1)
				continue
			}
			for l := range x {
				for range x[l] & 7 {
					x[l] = x[l]*3 + y[l]
				}
			}
			addTiles(out, x, y, 16, 1)
			addTiles(out, y, x, 2, 1)
		}
		return raw(out)
	}},
	{file: "tile", name: "labeled", elem: 4, blocks: []int{32, 48, 64, 256}, ref: ofWarps(labeled)},
	{file: "tile", name: "tilereduce", elem: 4, blocks: []int{32, 64, 128, 256}, ref: func(a, _ []byte, n, block int) []byte {
		out := make([]int32, n)
		for i, x := range i32s(a) {
			out[i/block] += x
		}
		return raw(out)
	}},
	{file: "tile", name: "halfasm", elem: 2, ref: func(a, b []byte, n, _ int) []byte {
		out := make([]uint16, n)
		for i := range out {
			x, y := half(uint32(binary.LittleEndian.Uint16(a[2*i:]))), half(uint32(binary.LittleEndian.Uint16(b[2*i:])))
			sum := fmaOf(x, y, y)
			out[i] = halfBits(float64(sum))
		}
		return raw(out)
	}},
}

// ofWarps returns the reference of a function of the elements of one warp, which may be
// the last of a block and have fewer than 32 lanes.
func ofWarps(f func(x, y, out []int32)) func(a, b []byte, n, block int) []byte {
	return func(a, b []byte, n, block int) []byte {
		x, y, out := i32s(a), i32s(b), make([]int32, n)
		for start := 0; start < n; start += block {
			for w := start; w < start+block; w += 32 {
				end := min(w+32, start+block)
				f(x[w:end], y[w:end], out[w:end])
			}
		}
		return raw(out)
	}
}

// addTiles adds the results of tile<size> of tile.cu for each lane, times a factor.
func addTiles(out, x, y []int32, size int, factor int32) {
	for first := 0; first < len(x); first += size {
		x, y := x[first:first+size], y[first:first+size]
		var odd, small, low, sum, total int32
		all := int32(1<<size - 1)
		for l := range x {
			odd |= x[l] & 1 << l
			small |= pick(x[l]&7 == 0, 1, 0)
			low |= y[l] & 1 << l
			sum += x[l]
			total += y[l]
		}
		every := pick(slices.ContainsFunc(y, func(v int32) bool { return v&3 == 0 }), 0, 1)
		same := pick(odd == 0 || odd == all, 1, 0)
		for l := range x {
			equal := int32(0)
			for k := range y {
				equal |= pick((y[l]^y[k])&3 == 0, 1, 0) << k
			}
			h := odd
			h = h*31 + small + 2*every + 4*pick(low == 0 || low == all, 1, 0)
			h = h*31 + sum
			h = h*31 + y[l^size/2]
			h = h*31 + equal
			h = h*31 + all*same + same
			out[first+l] += factor * (h*31 + total + slices.Max(x))
		}
	}
}

// labeled computes the results of the kernel of tile.cu for one warp.
func labeled(x, y, out []int32) {
	for l := range out {
		var sum, total, count, second, rank, negative int32
		for k := range x {
			if (y[k]^y[l])&3 != 0 {
				continue
			}
			sum = sum*3 + x[k]
			negative |= pick(x[k] < 0, 1, 0)
			rank += pick(k < l, 1, 0)
			if x[k]&1 != 0 {
				total += x[k]
				count++
				second |= x[k] >> 1 & 1 << k
			}
		}
		out[l] = sum + 5*(total+100*count+second)*(x[l]&1) + 7*rank + negative
	}
}

// TestLockReleasedByWarp checks that a lock that all lanes of a warp release at once is
// released once: a second store would release it again after another block has acquired
// it.
func TestLockReleasedByWarp(t *testing.T) {
	r := newRig(t, kernelFile(t, "tile"))
	const blocks, rounds = 16, 2000
	a := make([]int32, blocks*rounds)
	want := int32(0)
	for i := range a {
		a[i] = int32(i%7 + 1)
		want += a[i]
	}
	lock, sum := r.buffer(make([]byte, 8)), r.buffer(make([]byte, 4))
	r.launch("lockedsum", [3]uint32{blocks, 1, 1}, [3]uint32{32, 1, 1}, 0, lock, sum, r.buffer(raw(a)), rounds)
	got, err := r.read(sum, 4)
	if err != nil {
		t.Fatal(err)
	}
	if v := i32s(got)[0]; v != want {
		t.Errorf("sum under the lock = %d, want %d", v, want)
	}
}
