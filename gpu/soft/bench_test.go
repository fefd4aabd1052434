package soft

import (
	"testing"
)

// BenchmarkKernels reports lane-instructions per second on all processors. The
// baseline is a per-thread switch interpreter in Go, 0.3 G instructions/s on one
// core for saxpy (facts of the project's design notes).
func BenchmarkKernels(b *testing.B) {
	for _, c := range []struct {
		file, name  string
		grid, block [3]uint32
		n           int
		perThread   float64 // PTX instructions that one thread executes
	}{
		{"basic", "saxpy", [3]uint32{1024, 1, 1}, [3]uint32{256, 1, 1}, 1 << 18, 21},
		{"block", "matmul", [3]uint32{16, 16, 1}, [3]uint32{16, 16, 1}, 256, 16 * (16*3 + 10)},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, kernelFile(b, c.file))
			x, y, z := r.buffer(make([]byte, 1<<20)), r.buffer(make([]byte, 1<<20)), r.buffer(make([]byte, 1<<20))
			threads := float64(c.grid[0]*c.grid[1]) * float64(c.block[0]*c.block[1])
			b.ResetTimer()
			for range b.N {
				r.launch(c.name, c.grid, c.block, 0, x, y, z, c.n)
				if _, err := r.read(z, 4); err != nil {
					b.Fatal(err)
				}
			}
			rate := float64(b.N) * threads * c.perThread / b.Elapsed().Seconds()
			b.ReportMetric(rate/1e9, "Ginst/s")
			b.ReportMetric(rate/0.3e9, "x_baseline")
		})
	}
}
