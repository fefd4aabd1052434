package soft_test

import "testing"

// perEvent repeatedly launches a kernel of wait.cu, waits for each launch, and reports
// the time per event.
func perEvent(b *testing.B, events int, launch func(r *rig)) {
	r := newRig(b, kernelFile(b, "wait"))
	wait := r.buffer(make([]byte, 4))
	b.ResetTimer()
	for range b.N {
		launch(r)
		if _, err := r.read(wait, 4); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

// BenchmarkWaits measures the cost of waiting for others: a lock that the 128 threads
// of a block take in turn, one that the threads of 4 blocks take, and a block's part in
// a barrier of a grid of 64 blocks. Baseline: BenchmarkNoWaits.
func BenchmarkWaits(b *testing.B) {
	b.Run("lock", func(b *testing.B) { locks(b, 1, 128, 1) })
	b.Run("lock-of-blocks", func(b *testing.B) { locks(b, 4, 128, 1) })
	b.Run("grid-barrier", func(b *testing.B) { stencils(b, 1, 16) })
}

// BenchmarkNoWaits does the same work without waiting: one thread takes the lock each
// time, and a launch for each round replaces the barrier.
func BenchmarkNoWaits(b *testing.B) {
	b.Run("lock", func(b *testing.B) { locks(b, 1, 1, 128) })
	b.Run("lock-of-blocks", func(b *testing.B) { locks(b, 1, 1, 512) })
	b.Run("grid-barrier", func(b *testing.B) { stencils(b, 16, 1) })
}

func locks(b *testing.B, blocks, threads, rounds int) {
	a := make([]int32, rounds)
	perEvent(b, blocks*threads*rounds, func(r *rig) {
		l := r.buffer(make([]byte, 8))
		v := r.buffer(raw(a))
		r.launch("locked", [3]uint32{uint32(blocks), 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0, l, l+4, v, rounds)
		for _, x := range []uint64{l, v} {
			if err := r.c.MemFree(x); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func stencils(b *testing.B, launches, rounds int) {
	const blocks, threads = 64, 256
	var word, x, y uint64
	perEvent(b, blocks*launches*rounds, func(r *rig) {
		if word == 0 {
			word, x, y = r.buffer(make([]byte, 4)), r.buffer(make([]byte, 4*blocks*threads)), r.buffer(make([]byte, 4*blocks*threads))
		}
		for range launches {
			r.launch("gridstencil", [3]uint32{blocks, 1, 1}, [3]uint32{threads, 1, 1}, 0, word, x, y, rounds)
		}
	})
}

// BenchmarkLaunch measures a launch of one block of 32 threads: one after another
// without waiting, and with a wait for each. Baseline: BenchmarkHandOver.
func BenchmarkLaunch(b *testing.B) {
	r := newRig(b, kernelFile(b, "wait"))
	c := r.buffer(make([]byte, 4))
	done := make(chan error, 1)
	notify := func(err error) { done <- err }
	wait := func() {
		if err := r.c.StreamNotify(nil, notify); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	one := func() { r.launch("nothing", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, c) }
	b.Run("queued", func(b *testing.B) {
		for i := range b.N {
			if one(); i%1000 == 999 {
				wait()
			}
		}
		wait()
	})
	b.Run("waited", func(b *testing.B) {
		for range b.N {
			one()
			wait()
		}
	})
}

// BenchmarkHandOver measures the minimum cost of waiting for a launch: one goroutine
// sends to another one and receives from it.
func BenchmarkHandOver(b *testing.B) {
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	for i := range b.N {
		there <- i
		<-back
	}
	close(there)
}
