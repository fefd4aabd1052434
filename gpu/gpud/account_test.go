package gpud_test

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const kib = 1 << 10

// accounted is a worker as far as memory is concerned: a session that keeps an
// account or, like an older worker, does not.
type accounted struct {
	*client.Host
	a    *worker.Account // nil: it asks gpud for each allocation
	used uint64
	mine []uint64 // sizes of its allocations
}

func (n *testNode) account(vgpu string) *accounted {
	h := n.dial(vgpu)
	a := worker.NewAccount(h.Limits().VRAM)
	h.Account(a)
	return &accounted{Host: h, a: a}
}

func (w *accounted) alloc(bytes uint64) error {
	if w.a == nil || !w.a.Take(bytes) {
		if err := w.Reserve(bytes); err != nil {
			return err
		}
	}
	w.used += bytes
	w.mine = append(w.mine, bytes)
	return nil
}

// free frees allocation i.
func (w *accounted) free(i int) {
	bytes := w.mine[i]
	w.mine = append(w.mine[:i], w.mine[i+1:]...)
	w.used -= bytes
	switch {
	case w.a == nil:
		w.Release(bytes)
	case w.a.Put(bytes):
		w.Settle()
	}
}

func (w *accounted) info() (free uint64, err error) {
	if w.a != nil {
		if free, ok := w.a.Free(w.Limits().VRAM); ok {
			return free, nil
		}
	}
	free, _, err = w.Memory()
	return free, err
}

// TestIdleMemoryIsReclaimed checks two processes of one vGPU that need all of its
// memory in turn: memory that the other holds without using it is always
// available, and the limit is never exceeded.
func TestIdleMemoryIsReclaimed(t *testing.T) {
	n := newTestNode(t)
	const limit = 64 << 20
	n.put("v", limit, 0)
	a, b := n.account("v"), n.account("v")
	for i := range 20 {
		if err := a.alloc(kib); err != nil { // and idle memory with it
			t.Fatal(err)
		}
		a.free(0)
		if err := b.alloc(limit); err != nil {
			t.Fatalf("round %d: allocate all %d bytes = %v, want no error: the other process uses none", i, limit, err)
		}
		if err := a.alloc(256); !errors.Is(err, abi.ErrOutOfMemory) {
			t.Fatalf("allocate more than the limit = %v, want %v", err, abi.ErrOutOfMemory)
		}
		if free, err := a.info(); err != nil || free != 0 {
			t.Fatalf("free memory = %d bytes, %v, want 0", free, err)
		}
		b.free(0)
		a, b = b, a
	}
}

// TestKeptMemoryIsNotMissed checks that memory which a guest keeps after freeing it
// is available too: its worker frees it before it answers a recall.
func TestKeptMemoryIsNotMissed(t *testing.T) {
	n := newTestNode(t)
	const limit = 8 << 20
	n.put("v", limit, 0)
	a, b := n.account("v"), n.account("v")
	if err := a.alloc(mib); err != nil {
		t.Fatal(err)
	}
	var kept atomic.Uint64
	kept.Store(mib)
	a.Reclaimable(func(done func()) {
		go func() { // the issuer
			if bytes := kept.Swap(0); bytes > 0 && a.a.Put(bytes) {
				a.Settle()
			}
			done()
		}()
	})
	if err := b.alloc(limit); err != nil {
		t.Errorf("allocate all memory of the vGPU, of which the other process keeps some that it has freed = %v, want no error", err)
	}
	if left := kept.Load(); left != 0 {
		t.Errorf("%d bytes are kept after a recall, want 0", left)
	}
}

// TestSoleProcessOfVGPU checks that the only process of a vGPU with memory allocates
// and asks without gpud, until a second one has memory.
func TestSoleProcessOfVGPU(t *testing.T) {
	n := newTestNode(t)
	n.put("v", gib, 0)
	a, b := n.account("v"), n.account("v")
	if err := a.alloc(kib); err != nil {
		t.Fatal(err)
	}
	if !a.a.Take(mib) {
		t.Error("Take(1 MiB) from the idle memory failed: the first reserve brought none")
	}
	a.a.Put(mib)
	if free, ok := a.a.Free(gib); !ok || free != gib-kib {
		t.Errorf("free memory while alone = %d bytes, %t, want %d, true", free, ok, gib-kib)
	}
	if err := b.alloc(mib); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.a.Free(gib); ok {
		t.Error("the session still considers itself alone after the other's memory was granted")
	}
	for _, w := range []*accounted{a, b} {
		if free, err := w.info(); err != nil || free != gib-kib-mib {
			t.Errorf("free memory beside another process = %d bytes, %v, want %d", free, err, gib-kib-mib)
		}
	}
	st, err := b.Status()
	if err != nil || st.VRAMUsed != kib+mib {
		t.Errorf("VRAMUsed = %d, %v, want %d", st.VRAMUsed, err, kib+mib)
	}
	b.free(0)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if free, err := a.info(); err != nil || free != gib-kib {
		t.Errorf("free memory after the other process ended = %d bytes, %v, want %d", free, err, gib-kib)
	}
	if _, ok := a.a.Free(gib); !ok {
		t.Error("the session was not notified that it is alone again")
	}
}

// TestMemoryIsExact runs three processes at random, with and without accounts, while
// gpud restarts and processes end: an allocation succeeds if and only if there is
// room for it, and the free memory that each process is given is exact.
func TestMemoryIsExact(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewSource(seed))
	n := newTestNode(t)
	const limit = 8 << 20
	n.put("v", limit, 0)
	n.put("full", gib, 0)
	join := func(i int) *accounted {
		if i == 2 {
			return &accounted{Host: n.dial("v")}
		}
		return n.account("v")
	}
	all := []*accounted{join(0), join(1), join(2)}
	for step := range 600 {
		used := uint64(0)
		for _, w := range all {
			used += w.used
		}
		i := rnd.Intn(len(all))
		w := all[i]
		where := fmt.Sprintf("step %d, process %d, %d bytes in use", step, i, used)
		k := rnd.Intn(100)
		t.Logf("%s: %d", where, k)
		switch {
		case k < 45:
			bytes := uint64(1+rnd.Intn(1<<uint(4+rnd.Intn(10)))) * 256
			if rnd.Intn(6) == 0 {
				bytes = max(limit-used, 256) // exactly all of it
			}
			err := w.alloc(bytes)
			if fits := bytes <= limit-used; fits && err != nil || !fits && !errors.Is(err, abi.ErrOutOfMemory) {
				t.Fatalf("%s: allocate %d bytes with %d free: %v", where, bytes, limit-used, err)
			}
		case k < 80:
			if len(w.mine) > 0 {
				w.free(rnd.Intn(len(w.mine)))
			}
			if w.a == nil {
				_, _ = w.info() // a release has no answer: now it has arrived
			}
		case k < 92:
			free, err := w.info()
			if w.a == nil && free < limit-used { // an older worker does not learn what is unused in the accounts of others
				free = limit - used
			}
			if err != nil || free != limit-used {
				t.Fatalf("%s: free memory = %d bytes, %v, want %d", where, free, err, limit-used)
			}
		case k < 94 && w.a != nil:
			if _, surplus := w.a.Rest(); surplus {
				w.Settle()
			}
		case k < 97:
			if err := w.Close(); err != nil {
				t.Fatalf("%s: close: %v", where, err)
			}
			all[i] = join(i)
		case k < 98:
			n.stop()
			n.start()
			for _, o := range all { // gpud uses the last report of a worker without an account until it is back
				if o.a == nil {
					_, _ = o.info()
				}
			}
		}
	}
	for _, w := range all {
		_ = w.Close()
	}
	eventually(t, "everything given back", func() bool { return n.vgpu("v").VRAMUsed == 0 })
}

// TestOneIsAlone checks that of two processes without memory only one is told that
// it is alone; the next allocation of the other revokes that.
func TestOneIsAlone(t *testing.T) {
	n := newTestNode(t)
	n.put("v", gib, 0)
	a, b := n.account("v"), n.account("v")
	for _, w := range []*accounted{a, b} {
		if free, err := w.info(); err != nil || free != gib {
			t.Fatalf("free memory = %d bytes, %v, want all %d", free, err, gib)
		}
	}
	if err := b.alloc(mib); err != nil {
		t.Fatal(err)
	}
	if free, err := a.info(); err != nil || free != gib-mib {
		t.Errorf("free memory of a after b allocated 1 MiB = %d bytes, %v, want %d", free, err, gib-mib)
	}
}

// TestFreedWhileGpudIsAway checks that memory which a process frees while gpud is
// not running is available, even if another process asks for it before the first has
// reconnected.
func TestFreedWhileGpudIsAway(t *testing.T) {
	for name, account := range map[string]bool{"with an account": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.put("v", gib, 0)
			way := filepath.Join(t.TempDir(), "gpud.sock")
			if err := os.Symlink(n.cfg.Socket, way); err != nil {
				t.Fatal(err)
			}
			a := &accounted{Host: n.dialAt(way, "v")}
			if account {
				a.a = worker.NewAccount(gib)
				a.Account(a.a)
			}
			b := n.account("v")
			if err := a.alloc(gib); err != nil {
				t.Fatal(err)
			}
			n.stop()
			if err := os.Remove(way); err != nil { // it cannot reconnect before the test lets it
				t.Fatal(err)
			}
			a.free(0)
			n.start()
			got := make(chan error, 1)
			go func() { got <- b.alloc(gib) }()
			select {
			case err := <-got:
				t.Errorf("reserve = %v before the other worker had reconnected, want it to wait", err)
			case <-time.After(200 * time.Millisecond): // a broken gpud answers at once
				if err := os.Symlink(n.cfg.Socket, way); err != nil {
					t.Fatal(err)
				}
				if err := <-got; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestHungWorkerWithIdleMemory checks that a killed worker loses its idle memory too,
// and that one that hangs delays others only for a moment.
func TestHungWorkerWithIdleMemory(t *testing.T) {
	n := newTestNode(t)
	n.put("a", 2*gib, 0)
	n.put("b", gib, 0)
	w := n.worker(t, "a", "NODE_TEST_ACCOUNT=1")
	if used := n.vgpu("a").VRAMUsed; used <= gib {
		t.Errorf("%d bytes held, want more than 1 GiB: the idle memory counts too", used)
	}
	freeze(t, w)
	b := n.account("a")
	start := time.Now()
	if err := b.alloc(gib); !errors.Is(err, abi.ErrOutOfMemory) { // the idle memory is held: the limit is never exceeded
		t.Errorf("allocate 1 GiB beside the idle memory of a hung worker = %v, want %v", err, abi.ErrOutOfMemory)
	}
	first := time.Since(start)
	if first > 15*time.Second {
		t.Errorf("a hung worker delayed another for %v, want at most 15s", first)
	}
	if err := b.alloc(mib); err != nil {
		t.Error(err)
	}
	start = time.Now()
	if err := b.alloc(gib); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("second allocation of 1 GiB = %v, want %v", err, abi.ErrOutOfMemory)
	}
	if took := time.Since(start); took > time.Second && took > first/2 {
		t.Errorf("second wait for the hung worker took %v, want at most 1s or half of the first, %v", took, first)
	}
	kill9(t, w)
	eventually(t, "its memory, idle memory too", func() bool { return n.vgpu("a").VRAMUsed < 64*mib })
	if err := b.alloc(gib); err != nil {
		t.Error(err)
	}
}

// TestGreedyProcessStarvesNobody checks that a process which asks for all memory in
// a loop takes nothing from another vGPU, and nothing that the other process of its
// own vGPU uses.
func TestGreedyProcessStarvesNobody(t *testing.T) {
	n := newTestNode(t)
	n.put("v", 64*mib, 0)
	n.put("other", 64*mib, 0)
	greedy, neighbour, other := n.account("v"), n.account("v"), n.account("other")
	if err := neighbour.alloc(8 * mib); err != nil {
		t.Fatal(err)
	}
	if err := other.alloc(kib); err != nil {
		t.Fatal(err)
	}
	idle := other.a.Want()
	var rounds atomic.Int64
	var stop atomic.Bool
	var loop sync.WaitGroup
	loop.Go(func() {
		for ; !stop.Load(); rounds.Add(1) {
			if err := greedy.alloc(56 * mib); err == nil {
				greedy.free(0)
			} else if !errors.Is(err, abi.ErrOutOfMemory) {
				t.Error(err)
			}
			if err := greedy.alloc(64 * mib); !errors.Is(err, abi.ErrOutOfMemory) {
				t.Errorf("allocate more than the limit = %v, want %v", err, abi.ErrOutOfMemory)
			}
		}
	})
	for i := 0; i < 200 || rounds.Load() < 20; i++ {
		if err := other.alloc(mib); err != nil {
			t.Errorf("allocate in another vGPU = %v, want no error", err)
			break
		}
		other.free(len(other.mine) - 1)
		if neighbour.used != 8*mib {
			t.Errorf("memory of the neighbour = %d bytes, want %d", neighbour.used, 8*mib)
		}
	}
	stop.Store(true)
	loop.Wait()
	if other.a.Want() > idle+mib {
		t.Errorf("idle memory of the other vGPU was recalled: Want = %d bytes, before %d", other.a.Want(), idle)
	}
}

// TestKilledGpudAndIdleMemory kills gpud at any moment: nothing is allocated twice,
// and no session is lost because it held idle memory.
func TestKilledGpudAndIdleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and restarts gpud for some seconds")
	}
	dir := t.TempDir()
	n := &testNode{t: t, tokens: map[string]string{}, cfg: gpud.Config{Socket: dir + "/s", Log: testLog(t)}}
	n.control = client.NewControl(n.cfg.Socket)
	t.Cleanup(n.control.Close)
	proc := role(t, "gpud", dir+"/state", n.cfg.Socket, []*os.File{})
	eventually(t, "gpud listens", func() bool { _, err := n.control.GPUs(t.Context()); return err == nil })
	const limit = 64 << 20
	n.put("v", limit, 0)
	a, b := n.account("v"), n.account("v")
	rnd := rand.New(rand.NewSource(time.Now().UnixNano()))
	for range 6 {
		for range 30 {
			w, o := a, b
			if rnd.Intn(2) == 0 {
				w, o = b, a
			}
			bytes := uint64(1+rnd.Intn(40)) * mib
			if err := w.alloc(bytes); err != nil && bytes <= limit-w.used-o.used {
				t.Fatalf("allocate %d bytes with %d and %d of %d in use: %v", bytes, w.used, o.used, limit, err)
			}
			if a.used+b.used > limit {
				t.Fatalf("%d and %d bytes in use, want at most %d together", a.used, b.used, limit)
			}
			if rnd.Intn(2) == 0 && len(o.mine) > 0 {
				o.free(0)
			}
		}
		kill9(t, proc)
		proc = role(t, "gpud", dir+"/state", n.cfg.Socket, []*os.File{})
		for _, w := range []*accounted{a, b} { // each has reconnected
			if _, _, err := w.Memory(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-w.Lost():
				t.Fatal("a session was lost when its gpud was killed")
			default:
			}
		}
	}
}

// TestIdleMemoryIsReclaimedBeforeEviction checks, on an overcommitted card, that no
// session is evicted for memory that is not used, and that an evicted session
// takes no unused memory along.
func TestIdleMemoryIsReclaimedBeforeEviction(t *testing.T) {
	n := overcommitted(t)
	n.put("a", 50*mib, 0)
	n.put("b", 50*mib, 0)
	e := n.evictor("a")
	a := &accounted{Host: e.Host, a: worker.NewAccount(50 * mib)}
	a.Account(a.a)
	b := n.account("b")
	if err := a.alloc(20 * mib); err != nil {
		t.Fatal(err)
	}
	if used := n.vgpu("a").VRAMUsed; used <= 20*mib {
		t.Fatalf("%d bytes held, want more than %d: there is no idle memory to test with", used, 20*mib)
	}
	if err := b.alloc(44 * mib); err != nil {
		t.Errorf("allocate what fits beside the used memory of the other = %v, want no error", err)
	}
	select {
	case bytes := <-e.asked:
		t.Fatalf("asked to evict %d bytes for idle memory, want no eviction", bytes)
	default:
	}
	b.free(0)
	if err := b.alloc(kib); err != nil {
		t.Fatal(err)
	}
	if err := a.alloc(kib); err != nil { // and idle memory again
		t.Fatal(err)
	}
	if used := n.vgpu("a").VRAMUsed; used <= 20*mib+kib {
		t.Fatalf("%d bytes held, want more than %d: there is no idle memory again", used, 20*mib+kib)
	}
	grown := make(chan error, 1)
	go func() { grown <- b.alloc(45 * mib) }()
	if bytes := <-e.asked; bytes < mib || bytes > 2*mib {
		t.Errorf("asked to evict %d bytes, want the missing ones: 1 MiB to 2 MiB", bytes)
	}
	e.moved <- nil
	if err := <-grown; err != nil {
		t.Error(err)
	}
	if used := n.vgpu("a").VRAMUsed; used != 20*mib+kib {
		t.Errorf("%d bytes held while the session is out, want the used %d", used, 20*mib+kib)
	}
}
