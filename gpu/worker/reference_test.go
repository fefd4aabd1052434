package worker_test

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

// TestReferences checks that a reference is found by its name, can be bound to what
// a texture or surface of its context can be, and is destroyed with its module.
func TestReferences(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx, other := r.context(), r.context()
	module, function := r.module(ctx, fakedriver.KernelNop)
	a, foreign := r.array(ctx, plane), r.array(other, plane)
	mem, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
	find := func(a abi.ReferenceFind, name string, want error) {
		t.Helper()
		if _, _, err := r.Call(abi.OpReferenceFind, a, []byte(name)); !errors.Is(err, want) {
			t.Errorf("ReferenceFind(%q) with %+v = %v, want %v", name, a, err, want)
		}
	}
	picture, face := r.Handle(), r.Handle()
	find(abi.ReferenceFind{Module: module, Reference: picture}, fakedriver.ReferenceTexture, nil)
	find(abi.ReferenceFind{Module: module, Reference: face, Surface: 1}, fakedriver.ReferenceSurface, nil)
	find(abi.ReferenceFind{Module: module, Reference: r.Handle()}, "none", abi.ErrNotFound)
	find(abi.ReferenceFind{Module: module, Reference: r.Handle()}, "", abi.ErrNotFound)
	find(abi.ReferenceFind{Module: module, Reference: picture}, fakedriver.ReferenceTexture, abi.ErrInvalidHandle)
	find(abi.ReferenceFind{Module: function, Reference: r.Handle()}, fakedriver.ReferenceTexture, abi.ErrInvalidHandle)
	find(abi.ReferenceFind{Module: module, Reference: r.Handle(), Surface: 2}, fakedriver.ReferenceTexture, abi.ErrInvalidValue)
	find(abi.ReferenceFind{Module: module, Reference: r.Handle(), Zero: 1}, fakedriver.ReferenceTexture, abi.ErrInvalidValue)

	r.call(abi.OpReferenceBind, abi.ReferenceBind{Ctx: ctx, Reference: picture, Base: a, Level: 1, Filter: 1, Border: [4]float32{0, 0, 0, 7}})
	if got := r.driver.Bound(); got.Level != 1 || got.Filter != 1 || got.Border[3] != 7 {
		t.Errorf("bound reference = %+v, want level 1, filter 1 and border 7", got)
	}
	r.call(abi.OpReferenceBind, abi.ReferenceBind{Ctx: ctx, Reference: picture, Base: mem, Resource: abi.ResourceLinear, Width: 1024, Format: 0x20, Channels: 1})
	r.call(abi.OpReferenceBind, abi.ReferenceBind{Ctx: ctx, Reference: face, Base: a, Surface: 1})
	for want, binds := range map[abi.Result][]abi.ReferenceBind{
		abi.ErrInvalidValue: {
			{Reference: picture, Base: a, Filter: 2}, {Reference: picture, Base: a, Surface: 1}, {Reference: face, Base: a}, {Reference: picture, Base: a, Level: 3},
			{Reference: picture, Base: mem, Resource: abi.ResourceLinear, Width: 1025, Format: 0x20, Channels: 1},
		},
		abi.ErrInvalidHandle: {{Reference: picture, Base: foreign}, {Reference: module, Base: a}, {Base: a}, {Ctx: other, Reference: picture, Base: foreign}},
	} {
		for _, b := range binds {
			if b.Ctx == 0 {
				b.Ctx = ctx
			}
			r.fails(want, abi.OpReferenceBind, b)
		}
	}
	r.call(abi.OpModuleUnload, abi.ModuleUnload{Module: module})
	r.fails(abi.ErrInvalidHandle, abi.OpReferenceBind, abi.ReferenceBind{Ctx: ctx, Reference: picture, Base: a})
	find(abi.ReferenceFind{Module: module, Reference: r.Handle()}, fakedriver.ReferenceTexture, abi.ErrInvalidHandle)
}

// TestMultiprocessors checks that the multiprocessors of green contexts are the
// device's, and need no context.
func TestMultiprocessors(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	if n, _ := r.call(abi.OpMultiprocessors, abi.Multiprocessors{}); n != fakedriver.FakeMultiprocessors {
		t.Errorf("%d multiprocessors, want %d", n, fakedriver.FakeMultiprocessors)
	}
	r.fails(abi.ErrInvalidDevice, abi.OpMultiprocessors, abi.Multiprocessors{Device: 1})
	r.fails(abi.ErrInvalidValue, abi.OpMultiprocessors, abi.Multiprocessors{Zero: 1})
}
