package worker_test

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// granule is the smallest size that can be mapped, in bytes.
const granule = abi.MapGranule

func (r *rig) reserve(size, align, wish uint64) uint64 {
	r.Helper()
	at, _ := r.call(abi.OpMemReserve, abi.MemReserve{Size: size, Align: align, Wish: wish})
	if !r.Window().Device().Contains(at, size) || at%max(align, granule) != 0 {
		r.Errorf("%d bytes reserved at %#x, want them in %v and at a multiple of %#x", size, at, r.Window().Device(), align)
	}
	return at
}

func (r *rig) create(ctx, size uint64) uint64 {
	r.Helper()
	memory := r.Handle()
	r.call(abi.OpMemCreate, abi.MemCreate{Ctx: ctx, Memory: memory, Size: size})
	return memory
}

func (r *rig) free() uint64 {
	r.Helper()
	free, _ := r.call(abi.OpMemInfo, guesttest.None{})
	return free
}

// TestReservations checks that reservations are disjoint from each other and from
// memory, that the guest gets the address that it asks for if that is free, and that
// addresses can be reserved again.
func TestReservations(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	a := r.reserve(3*granule, 0, 0)
	b := r.reserve(granule, 64*granule, 0)
	wish := r.Window().Device().Base + 1024*granule
	if got := r.reserve(2*granule, 0, wish); got != wish {
		t.Errorf("reserved at %#x, want the free address %#x", got, wish)
	}
	for _, taken := range []uint64{wish, wish + granule, wish - granule, wish + 1, 1 << 20, 1<<64 - granule, r.Window().Host().Base} {
		got := r.reserve(2*granule, 0, taken)
		if got == taken {
			t.Errorf("reserved at %#x, want another address: it is in use", taken)
		}
		r.call(abi.OpMemUnreserve, abi.MemUnreserve{Address: got, Size: 2 * granule})
	}
	p, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 1 << 20})
	for _, at := range []uint64{a, b, wish} {
		if p >= at && p < at+3*granule {
			t.Errorf("memory allocated at %#x, want it outside the reservation at %#x", p, at)
		}
	}
	r.call(abi.OpMemUnreserve, abi.MemUnreserve{Address: wish, Size: 2 * granule})
	if got := r.reserve(2*granule, 0, wish); got != wish {
		t.Errorf("reserved at %#x, want %#x, which was released before", got, wish)
	}
}

// TestReservationsOutside checks that the guest gets an address outside of the window if the
// device has it, and another one if it overlaps the window or a reservation, or lies where
// no window could be.
func TestReservationsOutside(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	ask := func(wish uint64) uint64 {
		at, _ := r.call(abi.OpMemReserve, abi.MemReserve{Size: 4 * granule, Wish: wish})
		return at
	}
	w := r.Window()
	wish := (w.Base + w.Size + 64*granule) % abi.WindowEnd
	if wish < abi.WindowLowest {
		t.Fatalf("window %v leaves no address above it", w)
	}
	if got := ask(wish); got != wish {
		t.Fatalf("reserved at %#x, want the free address %#x outside of the window %v", got, wish, w)
	}
	for name, wish := range map[string]uint64{
		"reserved": wish, "partly reserved": wish + 3*granule, "partly in the window": w.Base - 2*granule, "host part": w.Host().Base,
		"low": abi.WindowLowest - granule, "high": abi.WindowEnd - 3*granule, "overflow": 1<<64 - granule, "not a granule": wish + 8*granule + 4096,
	} {
		if got := ask(wish); !w.Device().Contains(got, 4*granule) {
			t.Errorf("%s: %#x reserved for the wish %#x, want an address in the window", name, got, wish)
		}
	}
	memory := r.create(ctx, 4*granule)
	r.call(abi.OpMemMap, abi.MemMap{Memory: memory, Address: wish, Size: 4 * granule})
	r.call(abi.OpMemAccess, abi.MemAccess{Address: wish, Size: 4 * granule, Access: 3})
	_, f := r.module(ctx, fakedriver.KernelStore)
	if err := r.launch(ctx, f, wish+8, 5); err != nil {
		t.Errorf("kernel that stores outside of the window: %v", err)
	}
	r.fails(abi.ErrInvalidValue, abi.OpMemUnreserve, abi.MemUnreserve{Address: wish, Size: 4 * granule})
	r.call(abi.OpMemUnmap, abi.MemUnmap{Address: wish, Size: 4 * granule})
	r.call(abi.OpMemUnreserve, abi.MemUnreserve{Address: wish, Size: 4 * granule})
	r.fails(abi.ErrInvalidValue, abi.OpMemMap, abi.MemMap{Memory: memory, Address: wish, Size: 4 * granule})
	if got := ask(wish); got != wish {
		t.Errorf("reserved at %#x, want %#x, which was released before", got, wish)
	}
}

// TestMemoryToMapCounts checks that memory is counted from its creation until it
// is destroyed, wherever it is mapped.
func TestMemoryToMapCounts(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	at := r.reserve(4*granule, 0, 0)
	memory := r.create(ctx, 2*granule)
	if free := r.free(); free != vram-2*granule {
		t.Errorf("%d bytes free, want %d", free, vram-2*granule)
	}
	r.call(abi.OpMemMap, abi.MemMap{Memory: memory, Address: at, Size: 2 * granule})
	r.call(abi.OpMemAccess, abi.MemAccess{Address: at, Size: 2 * granule, Access: 3})
	_, f := r.module(ctx, fakedriver.KernelStore)
	if err := r.launch(ctx, f, at+8, 5); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpMemUnmap, abi.MemUnmap{Address: at, Size: 2 * granule})
	r.call(abi.OpMemDestroy, abi.MemDestroy{Memory: memory})
	if free := r.free(); free != vram {
		t.Errorf("%d bytes free at the end, want %d", free, vram)
	}
	if _, _, err := r.Call(abi.OpMemCreate, abi.MemCreate{Ctx: ctx, Memory: r.Handle(), Size: vram + granule}, nil); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("create more memory than the vGPU has = %v, want %v", err, abi.ErrOutOfMemory)
	}
	r.create(ctx, vram) // all of it
	other := r.context()
	if _, _, err := r.Call(abi.OpMemCreate, abi.MemCreate{Ctx: other, Memory: r.Handle(), Size: granule}, nil); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("create memory when all is in use = %v, want %v", err, abi.ErrOutOfMemory)
	}
	r.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ctx})
	if free := r.free(); free != vram {
		t.Errorf("%d bytes free after the context was destroyed, want %d", free, vram)
	}
}

// TestMappingsOfHostileGuests checks that what no guest library sends is an error
// of that command, and changes nothing.
func TestMappingsOfHostileGuests(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	at := r.reserve(8*granule, 0, 0)
	next := r.reserve(granule, 0, at+8*granule)
	a, b := r.create(ctx, 2*granule), r.create(ctx, granule)
	r.call(abi.OpMemMap, abi.MemMap{Memory: a, Address: at, Size: 2 * granule})
	r.call(abi.OpMemMap, abi.MemMap{Memory: b, Address: at + 2*granule, Size: granule})
	const far = 1<<64 - granule
	for name, c := range map[string]struct {
		op   abi.Op
		args guesttest.Args
		want error
	}{
		"reserve nothing":             {abi.OpMemReserve, abi.MemReserve{}, abi.ErrInvalidValue},
		"reserve a part of a granule": {abi.OpMemReserve, abi.MemReserve{Size: granule + 4096}, abi.ErrInvalidValue},
		"reserve with a bad align":    {abi.OpMemReserve, abi.MemReserve{Size: granule, Align: 3 * granule}, abi.ErrInvalidValue},
		"reserve with a vast align":   {abi.OpMemReserve, abi.MemReserve{Size: granule, Align: 1 << 63}, abi.ErrOutOfMemory},
		"reserve too much":            {abi.OpMemReserve, abi.MemReserve{Size: far}, abi.ErrInvalidValue},
		"reserve the window":          {abi.OpMemReserve, abi.MemReserve{Size: r.Window().Size}, abi.ErrOutOfMemory},
		"give back a part":            {abi.OpMemUnreserve, abi.MemUnreserve{Address: at, Size: granule}, abi.ErrInvalidValue},
		"give back from the middle":   {abi.OpMemUnreserve, abi.MemUnreserve{Address: at + granule, Size: 7 * granule}, abi.ErrInvalidValue},
		"give back what is mapped":    {abi.OpMemUnreserve, abi.MemUnreserve{Address: at, Size: 8 * granule}, abi.ErrInvalidValue},
		"create nothing":              {abi.OpMemCreate, abi.MemCreate{Ctx: ctx, Memory: r.Handle()}, abi.ErrInvalidValue},
		"create a part of a granule":  {abi.OpMemCreate, abi.MemCreate{Ctx: ctx, Memory: r.Handle(), Size: 4096}, abi.ErrInvalidValue},
		"create in no context":        {abi.OpMemCreate, abi.MemCreate{Ctx: a, Memory: r.Handle(), Size: granule}, abi.ErrInvalidHandle},
		"create with a taken handle":  {abi.OpMemCreate, abi.MemCreate{Ctx: ctx, Memory: a, Size: granule}, abi.ErrInvalidHandle},
		"destroy what is mapped":      {abi.OpMemDestroy, abi.MemDestroy{Memory: a}, abi.ErrInvalidValue},
		"destroy a context":           {abi.OpMemDestroy, abi.MemDestroy{Memory: ctx}, abi.ErrInvalidHandle},
		"free mapped memory":          {abi.OpMemFree, abi.MemFree{Address: at}, abi.ErrInvalidValue},
		"map what is no memory":       {abi.OpMemMap, abi.MemMap{Memory: ctx, Address: at + 4*granule, Size: granule}, abi.ErrInvalidHandle},
		"map nothing":                 {abi.OpMemMap, abi.MemMap{Memory: a, Address: at + 4*granule}, abi.ErrInvalidValue},
		"map more than there is":      {abi.OpMemMap, abi.MemMap{Memory: a, Address: at + 4*granule, Size: 3 * granule}, abi.ErrInvalidValue},
		"map a part":                  {abi.OpMemMap, abi.MemMap{Memory: a, Address: at + 4*granule, Size: granule}, abi.ErrNotSupported},
		"map over a mapping":          {abi.OpMemMap, abi.MemMap{Memory: a, Address: at + granule, Size: 2 * granule}, abi.ErrInvalidValue},
		"map off a granule":           {abi.OpMemMap, abi.MemMap{Memory: a, Address: at + 4*granule + 4096, Size: granule}, abi.ErrInvalidValue},
		"map across two reservations": {abi.OpMemMap, abi.MemMap{Memory: a, Address: next - granule, Size: 2 * granule}, abi.ErrInvalidValue},
		"map outside of all":          {abi.OpMemMap, abi.MemMap{Memory: a, Address: next + granule, Size: granule}, abi.ErrInvalidValue},
		"map around the end":          {abi.OpMemMap, abi.MemMap{Memory: a, Address: far, Size: 2 * granule}, abi.ErrInvalidValue},
		"unmap a part":                {abi.OpMemUnmap, abi.MemUnmap{Address: at, Size: granule}, abi.ErrInvalidValue},
		"unmap from the middle":       {abi.OpMemUnmap, abi.MemUnmap{Address: at + granule, Size: 2 * granule}, abi.ErrInvalidValue},
		"unmap more than is mapped":   {abi.OpMemUnmap, abi.MemUnmap{Address: at, Size: 4 * granule}, abi.ErrInvalidValue},
		"unmap nothing":               {abi.OpMemUnmap, abi.MemUnmap{Address: at}, abi.ErrInvalidValue},
		"unmap around the end":        {abi.OpMemUnmap, abi.MemUnmap{Address: at, Size: far}, abi.ErrInvalidValue},
		"access of a part":            {abi.OpMemAccess, abi.MemAccess{Address: at, Size: 3*granule - 4096, Access: 3}, abi.ErrInvalidValue},
		"access that is none":         {abi.OpMemAccess, abi.MemAccess{Address: at, Size: 3 * granule, Access: 2}, abi.ErrInvalidValue},
		"access of the unmapped":      {abi.OpMemAccess, abi.MemAccess{Address: at + 4*granule, Size: granule, Access: 3}, abi.ErrInvalidValue},
	} {
		if _, _, err := r.Call(c.op, c.args, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	r.call(abi.OpMemAccess, abi.MemAccess{Address: at, Size: 3 * granule, Access: 3})
	r.call(abi.OpMemUnmap, abi.MemUnmap{Address: at, Size: 3 * granule})
	r.call(abi.OpMemUnreserve, abi.MemUnreserve{Address: at, Size: 8 * granule})
	r.call(abi.OpMemDestroy, abi.MemDestroy{Memory: a})
	if free := r.free(); free != vram-granule {
		t.Errorf("%d bytes free, want %d", free, vram-granule)
	}
}

// TestContextEndsWithMappings checks that a context's end removes its mappings,
// and that the addresses can be used again.
func TestContextEndsWithMappings(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	at := r.reserve(granule, 0, 0)
	for range 3 {
		ctx := r.context()
		memory := r.create(ctx, granule)
		r.call(abi.OpMemMap, abi.MemMap{Memory: memory, Address: at, Size: granule})
		r.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ctx})
	}
	r.call(abi.OpMemUnreserve, abi.MemUnreserve{Address: at, Size: granule})
}
