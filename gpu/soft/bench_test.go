package soft

import (
	"math/rand"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkKernels reports lane-instructions per second of processor time. The
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
			data := make([]float32, 1<<18)
			for i := range data {
				data[i] = rand.Float32()
			}
			x, y, z := r.buffer(raw(data)), r.buffer(raw(data)), r.buffer(raw(data))
			threads := float64(c.grid[0]*c.grid[1]) * float64(c.block[0]*c.block[1])
			b.ResetTimer()
			start := cpuTime(b)
			for range b.N {
				r.launch(c.name, c.grid, c.block, 0, x, y, z, c.n)
				if _, err := r.read(z, 4); err != nil {
					b.Fatal(err)
				}
			}
			rate := float64(b.N) * threads * c.perThread / (cpuTime(b) - start).Seconds()
			b.ReportMetric(rate/1e9, "Ginst/s")
			b.ReportMetric(rate/0.3e9, "x_baseline")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
