package soft_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// referenceKernel returns textureKernel in a module with references, and a variable
// that has the address of one.
func referenceKernel(body string) string {
	return strings.Replace(textureKernel(body), ".visible",
		".global .texref other;\n.global .texref bound;\n.global .surfref face;\n.global .u64 list[2] = {bound, face};\n.visible", 1)
}

func (r *rig) references() worker.References { return r.c.(worker.References) }

// linear binds numbers in device memory to a reference.
func (r *rig) linear(ref worker.Reference, numbers ...float32) {
	r.Helper()
	mem := r.buffer(floatBytes(numbers...))
	a := abi.TextureCreate{Base: mem, Resource: abi.ResourceLinear, Width: uint64(len(numbers)), Format: formatFloat, Channels: 1}
	if err := r.references().ReferenceBind(ref, a, nil); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) reference(name string, surface bool) worker.Reference {
	r.Helper()
	ref, err := r.references().ReferenceFind(r.module, name, surface)
	if err != nil {
		r.Fatal(err)
	}
	return ref
}

// TestReferences reads a reference by its name and by its address, from all sources of
// addresses.
func TestReferences(t *testing.T) {
	const fetch = "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, "
	for name, body := range map[string]string{
		"by name":            fetch + "[bound, {2}];",
		"by address":         "mov.u64 %t, bound; " + fetch + "[%t, {2}];",
		"by a variable":      "ld.global.u64 %t, [list]; " + fetch + "[%t, {2}];",
		"is a texture":       "istypep.texref %p0, bound; selp.f32 %f0, 0f40400000, 0f00000000, %p0; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1;",
		"after another kind": "mov.u64 %t, face; istypep.texref %p0, %t; @%p0 trap; " + fetch + "[bound, {2}];",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, referenceKernel(body))
			r.linear(r.reference("other", false), 7, 8, 9)
			r.linear(r.reference("bound", false), 1, 2, 3)
			got, err := r.four(0)
			if want := bitsOf(3, 0, 0, 0); err != nil || !sameWords(got, want) {
				t.Errorf("fetched words = %x, error %v; want %x", got, err, want)
			}
		})
	}
}

// TestSurfaceReference binds an array to a surface reference, which a kernel writes.
func TestSurfaceReference(t *testing.T) {
	r := newRig(t, referenceKernel("mov.b32 %r0, 0f40E00000; sust.b.1d.b32.trap [face, {4}], %r0; suld.b.1d.b32.trap %r1, [face, {4}]; mov.b32 %f0, %r1; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1;"))
	desc := abi.ArrayCreate{Width: 4, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArraySurface}
	face := r.reference("face", true)
	if _, err := r.references().ReferenceFind(r.module, "face", false); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("ReferenceFind of a surface reference as a texture reference: error %v, want %v", err, abi.ErrNotFound)
	}
	if err := r.references().ReferenceBind(face, abi.TextureCreate{Surface: 1}, r.array(desc)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.four(0); err != nil || !sameWords(got, bitsOf(7, 0, 0, 0)) {
		t.Errorf("words = %x, error %v; want %x", got, err, bitsOf(7, 0, 0, 0))
	}
}

// TestReferenceOfALaunch checks that a launch keeps the binding at its time, and that
// the next one uses the binding that is made in between.
func TestReferenceOfALaunch(t *testing.T) {
	r := newRig(t, referenceKernel("again: ld.volatile.global.u32 %r0, [%t]; setp.eq.u32 %p0, %r0, 0; @%p0 bra again; tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [bound, {0}];"))
	ref, flag, out := r.reference("bound", false), r.buffer(make([]byte, 4)), r.buffer(make([]byte, 32))
	if _, err := r.read(out, 32); err != nil { // both buffers are zero
		t.Fatal(err)
	}
	done := make(chan error, 3)
	report := func(err error) { done <- err }
	for i, stream := range []worker.Stream{r.stream(), r.stream()} {
		r.linear(ref, float32(i+1))
		if _, err := r.read(flag, 4); err != nil { // the numbers have been copied
			t.Fatal(err)
		}
		params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, out+uint64(16*i)), flag)
		if err := r.c.Launch(stream, r.funcs["k"], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params}, report); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.c.CopyHtoD(r.stream(), flag, []byte{1, 0, 0, 0}, report); err != nil {
		t.Fatal(err)
	}
	for range cap(done) {
		if err := patience.Receive(t, time.Minute, "kernels and copy end", done); err != nil {
			t.Fatal(err)
		}
	}
	r.expect(out, 8, func(i int) uint32 { return map[int]uint32{0: bitsOf(1)[0], 4: bitsOf(2)[0]}[i] })
}

// TestBadReferences checks that an invalid binding is an error, and that reading a
// reference without a binding, or whose memory has been freed, is an illegal address.
func TestBadReferences(t *testing.T) {
	r := newRig(t, referenceKernel("tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [bound, {0}];"))
	ref := r.reference("bound", false)
	mem := r.buffer(make([]byte, 64))
	for want, binds := range map[abi.Result][]abi.TextureCreate{abi.ErrInvalidValue: {
		{Base: mem + 4, Resource: abi.ResourceLinear, Width: 4, Format: formatFloat, Channels: 1},
		{Base: 4096, Resource: abi.ResourceLinear, Width: 4, Format: formatFloat, Channels: 1}, // nothing is allocated there
		{Base: mem, Resource: abi.ResourceLinear, Width: 4, Format: formatU32, Channels: 1, Filter: 1},
	}, abi.ErrInvalidHandle: {{}}} {
		for _, a := range binds {
			if err := r.references().ReferenceBind(ref, a, nil); !errors.Is(err, want) {
				t.Errorf("ReferenceBind of %+v: error %v, want %v", a, err, want)
			}
		}
	}
	if _, err := r.references().ReferenceFind(r.module, "none", false); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("ReferenceFind of an unknown name: error %v, want %v", err, abi.ErrNotFound)
	}
	if _, err := r.four(0); !errors.Is(err, abi.ErrIllegalAddress) || !strings.Contains(err.Error(), "nothing is bound") {
		t.Errorf("read without a binding: error %v, want %v with \"nothing is bound\"", err, abi.ErrIllegalAddress)
	}
}
