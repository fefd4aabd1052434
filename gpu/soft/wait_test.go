package soft_test

import (
	"testing"
)

// underLock is what the kernels with a lock do to the sum, so many threads in turn.
func underLock(threads int, a []int32, rounds int) int32 {
	// All threads add the same numbers, but in an order that is not known: with one
	// number the order does not matter.
	sum := int32(0)
	for range threads * rounds {
		sum = sum*3%1000003 + a[0]
	}
	return sum
}

// lockKernels are those in which every thread takes a lock.
var lockKernels = []string{"locked", "trylocked", "tickets"}

func TestLocks(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	const rounds = 3
	a := []int32{7, 7, 7}
	for _, name := range lockKernels {
		for _, size := range [][2]int{{1, 32}, {1, 128}, {4, 128}, {40, 64}, {3, 1024}} {
			l, sum := r.buffer(make([]byte, 8)), r.buffer(make([]byte, 4))
			r.launch(name, [3]uint32{uint32(size[0]), 1, 1}, [3]uint32{uint32(size[1]), 1, 1}, 0, l, sum, r.buffer(raw(a)), rounds)
			r.expect(sum, 1, func(int) uint32 { return uint32(underLock(size[0]*size[1], a, rounds)) })
		}
	}
}

// stencil is what gridstencil computes.
func stencil(x []int32, block, rounds int) []int32 {
	n := len(x)
	for range rounds {
		y := make([]int32, n)
		for i := range y {
			y[i] = 3*x[i] + x[(i+n-1)%n] - 5*x[(i+block)%n]
		}
		x = y
	}
	return x
}

func numbers(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i*7919%1009 - 500)
	}
	return v
}

// A grid of any size may wait for itself.
func TestGridBarrier(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	const rounds = 5
	for _, size := range [][2]int{{1, 64}, {2, 64}, {3, 100}, {64, 256}, {1000, 32}, {5000, 32}} {
		x := numbers(size[0] * size[1])
		dx, dy := r.buffer(raw(x)), r.buffer(make([]byte, 4*len(x)))
		r.launch("gridstencil", [3]uint32{uint32(size[0]), 1, 1}, [3]uint32{uint32(size[1]), 1, 1}, 0, r.buffer(make([]byte, 4)), dx, dy, rounds)
		want := stencil(x, size[1], rounds)
		r.expect(dy, len(x), func(i int) uint32 { return uint32(want[i]) })
	}
}

func TestLookBack(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	for _, size := range [][2]int{{1, 32}, {7, 64}, {2000, 64}, {300, 256}} {
		a := numbers(size[0] * size[1])
		c := r.buffer(make([]byte, 4*len(a)))
		r.launch("lookback", [3]uint32{uint32(size[0]), 1, 1}, [3]uint32{uint32(size[1]), 1, 1}, uint32(4*size[1]), r.buffer(raw(a)), r.buffer(make([]byte, 8*size[0])), c)
		want := make([]int32, len(a))
		for i, x := range a {
			want[i] = x + want[max(i-1, 0)]
		}
		r.expect(c, len(a), func(i int) uint32 { return uint32(want[i]) })
	}
}

func TestQueue(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	for _, size := range [][3]int{{2, 1, 1}, {2, 32, 64}, {8, 64, 16}, {64, 64, 256}} {
		blocks, threads := size[0], size[1]
		sum := r.buffer(make([]byte, 4))
		r.launch("queue", [3]uint32{uint32(blocks), 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0, r.buffer(make([]byte, 8)), r.buffer(make([]byte, 8*size[2])), sum, size[2])
		want := 0
		for i := range blocks / 2 * threads {
			for k := range 16 {
				want += i + 1000*k
			}
		}
		r.expect(sum, 1, func(int) uint32 { return uint32(want) })
	}
}

func TestRelay(t *testing.T) {
	r := newRig(t, kernelFile(t, "wait"))
	const blocks = 600
	c := r.buffer(make([]byte, 4*blocks))
	r.launch("relay", [3]uint32{blocks, 1, 1}, [3]uint32{32, 1, 1}, 0, c)
	r.expect(c, blocks, func(i int) uint32 { return uint32(blocks - i) })
}
