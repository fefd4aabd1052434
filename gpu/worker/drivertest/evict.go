package drivertest

import (
	"bytes"
	"errors"
	"maps"
	"math/rand"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const everything = 1 << 62

// evict evicts at least n bytes with the gate closed to all work; back admits
// work again after everything is restored.
func (x *tester) evict(ctx worker.Context, n uint64) (moved uint64) {
	x.Helper()
	x.gate.hold(true)
	x.gate.settle()
	moved, err := ctx.Evict(n)
	x.check(err)
	return moved
}

func (x *tester) back(ctx worker.Context) {
	x.Helper()
	x.check(ctx.Restore())
	x.gate.hold(false)
}

// testEvictsOrSaysNot checks that a device that cannot evict reports that, and
// loses no data by being asked.
func testEvictsOrSaysNot(x *tester) {
	ctx := x.context()
	p := x.alloc(ctx, 4096)
	x.write(ctx, nil, p, pattern(4096, 1))
	x.gate.settle()
	moved, err := ctx.Evict(everything)
	if x.driver.Evicts() {
		x.check(err)
		if moved != 4096 {
			x.Errorf("%d bytes evicted, want %d", moved, 4096)
		}
		x.check(ctx.Restore())
	} else {
		x.want(err, abi.ErrNotSupported)
		x.want(ctx.Restore(), abi.ErrNotSupported)
	}
	if !bytes.Equal(x.read(ctx, nil, p, 4096), x.kept(pattern(4096, 1))) {
		x.Error("the contents changed")
	}
}

// testEvictMakesRoom checks that contents and addresses are preserved, and that
// other contexts can use the memory in the meantime.
func testEvictMakesRoom(x *tester) {
	total := x.driver.Info().TotalMemory
	if total > 1<<30 {
		total = 1 << 30 // do not fill a large card
	}
	size := total * 3 / 4
	a, b := x.context(), x.context()
	p, small := x.alloc(a, size), x.alloc(a, 300)
	edge := pattern(100_003, 3)
	x.write(a, nil, p, edge)
	x.write(a, nil, p+size-100_003, edge)
	x.write(a, nil, small, edge[:300])
	full := total == x.driver.Info().TotalMemory
	if _, err := b.MemAlloc(size); full && !errors.Is(err, abi.ErrOutOfMemory) {
		x.Fatalf("MemAlloc of a second context = %v, want %v before the eviction", err, abi.ErrOutOfMemory)
	}
	if moved := x.evict(a, everything); moved != worker.Accounted(size)+worker.Accounted(300) {
		x.Errorf("%d bytes evicted, want %d", moved, worker.Accounted(size)+worker.Accounted(300))
	}
	q := x.alloc(b, size)
	if q == p {
		x.Errorf("address %#x of an evicted allocation was allocated again", q)
	}
	if full {
		x.want(a.Restore(), abi.ErrOutOfMemory)
		x.want(a.Restore(), abi.ErrOutOfMemory)
	}
	x.gate.hold(false) // b works
	x.write(b, nil, q, bytes.Repeat([]byte{0xff}, 4096))
	x.check(b.MemFree(q))
	x.check(x.sync(b))
	x.gate.hold(true)
	x.gate.settle()
	x.back(a)
	for _, at := range []uint64{p, p + size - 100_003} {
		if !bytes.Equal(x.read(a, nil, at, 100_003), x.kept(edge)) {
			x.Errorf("the contents at %#x changed", at)
		}
	}
	if !bytes.Equal(x.read(a, nil, small, 300), x.kept(edge[:300])) {
		x.Error("the contents of the small allocation changed")
	}
	if got := x.read(a, nil, p+size/2, 4096); !bytes.Equal(got, make([]byte, 4096)) {
		x.Error("bytes that were zero changed")
	}
}

// testEvictPart checks that only as much is evicted as asked for, in pieces, and
// more when more is asked for.
func testEvictPart(x *tester) {
	ctx := x.context()
	const n, each = 4, 8 << 20
	var all []uint64
	for i := range n {
		p := x.alloc(ctx, each)
		x.write(ctx, nil, p, pattern(each, i))
		all = append(all, p)
	}
	first := x.evict(ctx, 1)
	if first == 0 || first >= n*each {
		x.Errorf("%d bytes evicted when 1 was asked for, want more than 0 and less than %d", first, n*each)
	}
	second, err := ctx.Evict(each)
	x.check(err)
	if second < each {
		x.Errorf("%d bytes evicted when more was asked for, want at least %d", second, each)
	}
	rest, err := ctx.Evict(everything)
	x.check(err)
	none, err := ctx.Evict(everything)
	x.check(err)
	if first+second+rest != n*each || none != 0 {
		x.Errorf("%d, %d, %d and %d bytes evicted, want %d in total and 0 at last", first, second, rest, none, n*each)
	}
	x.back(ctx)
	for i, p := range all {
		if !bytes.Equal(x.read(ctx, nil, p, each), x.kept(pattern(each, i))) {
			x.Errorf("contents of piece %d changed", i)
		}
	}
}

// testEvictWithWorkPending checks that enqueued work waits, with its events and
// its order.
func testEvictWithWorkPending(x *tester) {
	ctx := x.context()
	k := x.kernels(ctx)
	p, q := x.alloc(ctx, 4096), x.alloc(ctx, 4096)
	s := x.stream(ctx, worker.StreamNonBlocking)
	e := x.event(ctx)
	x.write(ctx, s, p, pattern(4096, 5))
	x.gate.hold(true)
	x.gate.settle()
	var waits []func() error
	issue := func(op func(done func(error)) error) {
		done, wait := x.done()
		waits = append(waits, wait)
		x.check(op(done))
	}
	got := make([]byte, 4096)
	issue(func(done func(error)) error { return ctx.Launch(s, k["store"], one(p, 77), done) })
	issue(func(done func(error)) error { return ctx.CopyDtoD(s, q, p, 4096, done) })
	if _, err := ctx.Evict(everything); err != nil {
		x.Fatal(err)
	}
	issue(func(done func(error)) error { return ctx.CopyDtoH(s, got, q, done) })
	x.check(ctx.EventRecord(e, s))
	issue(func(done func(error)) error { return ctx.EventNotify(e, done) })
	issue(ctx.Notify)
	x.want(ctx.EventQuery(e), abi.ErrNotReady)
	x.want(ctx.StreamQuery(s), abi.ErrNotReady)
	x.check(ctx.MemFree(p)) // which happens after the work that uses it
	x.back(ctx)
	for _, wait := range waits {
		x.check(wait())
	}
	want := append([]byte{77, 0, 0, 0, 0, 0, 0, 0}, pattern(4096, 5)[8:]...)
	if !bytes.Equal(got, x.kept(want)) {
		x.Error("the result is not that of the work in its order")
	}
	x.check(ctx.EventQuery(e))
}

// testEvictedGoesOn checks that memory and modules can be allocated and freed in
// an evicted context; new memory is zero.
func testEvictedGoesOn(x *tester) {
	ctx := x.context()
	if moved := x.evict(ctx, everything); moved != 0 {
		x.Errorf("%d bytes evicted from an empty context, want 0", moved)
	}
	p, gone := x.alloc(ctx, 1<<20), x.alloc(ctx, 100)
	k, numbers := x.kernels(ctx), uint64(0)
	if x.o.Image == nil {
		_, _, info, err := ctx.ModuleLoad([]byte(Kernels), worker.ModuleOptions{})
		x.check(err)
		numbers = info.Globals[0].Address
	}
	x.check(ctx.MemFree(gone))
	x.check(x.sync(ctx))
	if err := ctx.MemFree(gone); err == nil {
		x.Error("second MemFree of an allocation returned no error")
	}
	done, wait := x.done()
	x.check(ctx.Launch(nil, k["store"], one(p+8, 5), done))
	x.back(ctx)
	x.check(wait())
	if got := x.read(ctx, nil, p, 1<<20); uint64(got[8]) != x.kept64(5) || !bytes.Equal(got[16:], make([]byte, 1<<20-16)) {
		x.Error("memory allocated during an eviction is not zero")
	}
	if numbers != 0 && !bytes.Equal(x.read(ctx, nil, numbers, 16), x.kept([]byte{11, 0, 0, 0, 22, 0, 0, 0, 33, 0, 0, 0, 44, 0, 0, 0})) {
		x.Error("a variable of a module that was loaded during an eviction is wrong")
	}
	x.check(ctx.Restore()) // everything is restored already
}

func testDestroyEvicted(x *tester) {
	for round := range 6 {
		ctx, err := x.driver.NewContext(0, x.gate, x.window)
		x.check(err)
		k := x.kernels(ctx)
		p := x.alloc(ctx, 24<<20)
		x.evict(ctx, uint64(round)<<22)
		x.check(ctx.Launch(nil, k["store"], one(p, 1), nil))
		x.alloc(ctx, 24<<20)
		x.gate.close() // as at the session's end; otherwise the work would wait for ever
		x.gate.hold(false)
		moved := make(chan error, 1)
		go func() {
			_, err := ctx.Evict(everything)
			moved <- err
		}()
		x.check(ctx.Destroy())
		if err := <-moved; err != nil && !errors.Is(err, abi.ErrInvalidContext) {
			x.Error(err)
		}
		x.gate.reopen()
	}
}

// testEvictAtRandom compares memory with a model after random operations.
func testEvictAtRandom(x *tester) {
	r := rand.New(rand.NewSource(7))
	ctxs := []worker.Context{x.context(), x.context()}
	type piece struct {
		ctx  int
		want []byte
	}
	model := map[uint64]*piece{}
	out := false
	var pending []func() error
	in := func() {
		if !out {
			return
		}
		for _, c := range ctxs {
			x.check(c.Restore())
		}
		x.gate.hold(false)
		out = false
		for _, wait := range pending {
			x.check(wait())
		}
		pending = nil
	}
	any := func() (uint64, *piece) {
		if len(model) == 0 {
			return 0, nil
		}
		keys := slices.Sorted(maps.Keys(model))
		p := keys[r.Intn(len(keys))]
		return p, model[p]
	}
	for range 400 {
		p, m := any()
		switch n := r.Intn(10); {
		case n < 2 && len(model) < 12:
			i, size := r.Intn(len(ctxs)), 1+r.Intn(3<<20)
			model[x.alloc(ctxs[i], uint64(size))] = &piece{i, make([]byte, size)}
		case m == nil:
		case n < 3:
			x.check(ctxs[m.ctx].MemFree(p))
			delete(model, p)
		case n < 6:
			b := pattern(1+r.Intn(len(m.want)), r.Intn(250))
			at := r.Intn(len(m.want) - len(b) + 1)
			done, wait := x.done()
			x.check(ctxs[m.ctx].CopyHtoD(nil, p+uint64(at), b, done))
			copy(m.want[at:], b)
			if pending = append(pending, wait); !out {
				for _, wait := range pending {
					x.check(wait())
				}
				pending = nil
			}
		case n < 8:
			for _, c := range ctxs {
				x.evict(c, uint64(r.Intn(8<<20)))
			}
			out = true
		case n < 9:
			in()
		default:
			in()
			if !bytes.Equal(x.read(ctxs[m.ctx], nil, p, uint64(len(m.want))), x.kept(m.want)) {
				x.Fatalf("contents of the %d bytes at %#x differ from the model", len(m.want), p)
			}
		}
	}
	in()
	for p, m := range model {
		if !bytes.Equal(x.read(ctxs[m.ctx], nil, p, uint64(len(m.want))), x.kept(m.want)) {
			x.Errorf("contents of the %d bytes at %#x differ from the model at the end", len(m.want), p)
		}
	}
}
