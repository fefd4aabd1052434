package soft_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"golang.org/x/sys/unix"
)

// BenchmarkKernels reports lane-instructions per second of processor time, for both
// engines. Baseline: BenchmarkKernelsInGo.
func BenchmarkKernels(b *testing.B) {
	for _, e := range []model.Engine{model.Interpreted, model.Compiled} {
		b.Run(string(e), func(b *testing.B) { benchmarkKernels(b, testEngines[e]) })
	}
}

var testEngines = map[model.Engine]exec.Engine{model.Interpreted: exec.Interpreted, model.Compiled: exec.Compiled}

func benchmarkKernels(b *testing.B, e exec.Engine) {
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
			r := newRigOf(b, device.Options{VRAM: 256 << 20, SMs: 2, Engine: e}, kernelFile(b, c.file))
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

// BenchmarkKernelsInGo is the baseline of BenchmarkKernels: the same sums as plain
// loops in Go on one processor, counted as the same instructions.
func BenchmarkKernelsInGo(b *testing.B) {
	x, y, z := make([]float32, 1<<18), make([]float32, 1<<18), make([]float32, 1<<18)
	for i := range x {
		x[i], y[i] = rand.Float32(), rand.Float32()
	}
	for _, c := range []struct {
		name string
		inst float64 // as in BenchmarkKernels
		run  func()
	}{
		{"saxpy", 1 << 18 * 21, func() {
			for i := range z {
				z[i] = 2*x[i] + y[i]
			}
		}},
		{"matmul", 1 << 16 * 16 * (16*3 + 10), func() {
			const n = 256
			for row := range n {
				for column := range n {
					sum := float32(0)
					for k := range n {
						sum += x[row*n+k] * y[k*n+column]
					}
					z[row*n+column] = sum
				}
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			start := cpuTime(b)
			for range b.N {
				c.run()
			}
			b.ReportMetric(float64(b.N)*c.inst/(cpuTime(b)-start).Seconds()/1e9, "Ginst/s")
		})
	}
}
