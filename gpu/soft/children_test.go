package soft_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// childrenPTX has kernels that launch kernels. out begins with a counter; the elements after
// it are labels in the order in which kernels ran, or results of calls.
const childrenPTX = ptxHead + `
.extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);

.func (.param .b32 r) launch(.param .b64 kernel, .param .b64 out, .param .b32 label, .param .b32 threads, .param .b64 stream) {
	.reg .b64 %f, %o, %p, %s; .reg .b32 %l, %t, %r; .reg .pred %none;
	ld.param.u64 %f, [kernel]; ld.param.u64 %o, [out]; ld.param.u32 %l, [label]; ld.param.u32 %t, [threads]; ld.param.u64 %s, [stream];
	{ .param .b64 f, p; .param .align 4 .b8 g[12], b[12]; .param .b32 n;
	st.param.b64 [f], %f; st.param.b32 [n], 0;
	st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1; st.param.b32 [b], %t; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
	call (p), cudaGetParameterBufferV2, (f, g, b, n); ld.param.b64 %p, [p]; }
	setp.eq.u64 %none, %p, 0; @%none bra LAUNCH;
	st.global.u64 [%p], %o; st.global.u32 [%p+8], %l; st.global.u64 [%p+16], %s;
LAUNCH:
	{ .param .b64 p, s; .param .b32 r; st.param.b64 [p], %p; st.param.b64 [s], %s; call (r), cudaLaunchDeviceV2, (p, s); ld.param.b32 %r, [r]; }
	st.param.b32 [r], %r; ret;
}
.func append(.param .b64 out, .param .b32 what) {
	.reg .b64 %o, %at; .reg .b32 %w, %i;
	ld.param.u64 %o, [out]; ld.param.u32 %w, [what];
	atom.global.add.u32 %i, [%o], 1; mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %o; st.global.u32 [%at+4], %w; ret;
}

.visible .entry again(.param .u64 out, .param .u32 label, .param .u64 stream) {
	.reg .b64 %o; .reg .b32 %l;
	ld.param.u64 %o, [out]; ld.param.u32 %l, [label];
	{ .param .b64 o; .param .b32 w; st.param.b64 [o], %o; st.param.b32 [w], %l; call append, (o, w); }
	ret;
}

.visible .entry count(.param .u64 out, .param .u32 label, .param .u64 stream) {
	.reg .b64 %o; ld.param.u64 %o, [out]; red.global.add.u32 [%o], 1; ret;
}

// Runs as a tree: a kernel with a label below 4 launches those with twice that, in the given
// stream, and one more, in the stream 0.
.visible .entry tree(.param .u64 out, .param .u32 label, .param .u64 stream) {
	.reg .b64 %o, %f, %s; .reg .b32 %l, %r; .reg .pred %leaf;
	ld.param.u64 %o, [out]; ld.param.u32 %l, [label]; ld.param.u64 %s, [stream];
	{ .param .b64 o; .param .b32 w; st.param.b64 [o], %o; st.param.b32 [w], %l; call append, (o, w); }
	setp.ge.u32 %leaf, %l, 4; @%leaf bra END;
	mov.u64 %f, tree; shl.b32 %l, %l, 1;
	{ .param .b64 f, o, s; .param .b32 l, t, r; st.param.b64 [f], %f; st.param.b64 [o], %o; st.param.b64 [s], %s; st.param.b32 [l], %l; st.param.b32 [t], 1;
	call (r), launch, (f, o, l, t, s); }
	mov.u64 %f, again; add.u32 %l, %l, 1;
	{ .param .b64 f, o, s; .param .b32 l, t, r; st.param.b64 [f], %f; st.param.b64 [o], %o; st.param.b64 [s], 0; st.param.b32 [l], %l; st.param.b32 [t], 1;
	call (r), launch, (f, o, l, t, s); }
END:
	ret;
}

// Launches itself until that fails, and appends the error.
.visible .entry chain(.param .u64 out, .param .u32 label, .param .u64 stream) {
	.reg .b64 %o, %f; .reg .b32 %l, %r; .reg .pred %p;
	ld.param.u64 %o, [out]; ld.param.u32 %l, [label]; mov.u64 %f, chain; add.u32 %l, %l, 1;
	{ .param .b64 f, o, s; .param .b32 l, t, r; st.param.b64 [f], %f; st.param.b64 [o], %o; st.param.b64 [s], 0; st.param.b32 [l], %l; st.param.b32 [t], 1;
	call (r), launch, (f, o, l, t, s); ld.param.b32 %r, [r]; }
	setp.eq.u32 %p, %r, 0; @%p bra END;
	{ .param .b64 o; .param .b32 w; st.param.b64 [o], %o; st.param.b32 [w], %l; call append, (o, w); }
	{ .param .b64 o; .param .b32 w; st.param.b64 [o], %o; st.param.b32 [w], %r; call append, (o, w); }
END:
	ret;
}

// Launches kernels of some threads that add 1 to the counter, and stores how many it could
// launch, and then the error.
.visible .entry many(.param .u64 out, .param .u32 threads, .param .u64 stream) {
	.reg .b64 %o, %f; .reg .b32 %t, %r, %n; .reg .pred %p;
	ld.param.u64 %o, [out]; ld.param.u32 %t, [threads]; mov.u64 %f, count; mov.u32 %n, 0;
AGAIN:
	{ .param .b64 f, o, s; .param .b32 l, t, r; st.param.b64 [f], %f; st.param.b64 [o], %o; st.param.b64 [s], 0; st.param.b32 [l], 0; st.param.b32 [t], %t;
	call (r), launch, (f, o, l, t, s); ld.param.b32 %r, [r]; }
	st.global.u32 [%o+4], %n; st.global.u32 [%o+8], %r; add.u32 %n, %n, 1;
	setp.eq.u32 %p, %r, 0; @%p bra AGAIN;
	ret;
}`

// memoryPTX has a kernel that allocates 64 bytes, and in a stream of its own fills them with 3
// and copies 60 of them to out; it also allocates too much, and frees another allocation.
const memoryPTX = ptxHead + `
.extern .func (.param .b32 r) __cudaCDP2Malloc(.param .b64 p, .param .b64 n);
.extern .func (.param .b32 r) __cudaCDP2Free(.param .b64 p);
.extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags(.param .b64 s, .param .b32 f);
.extern .func (.param .b32 r) __cudaCDP2StreamDestroy(.param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 p, .param .b32 v, .param .b64 n, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2MemcpyAsync(.param .b64 p, .param .b64 q, .param .b64 n, .param .b32 k, .param .b64 s);
.extern .func (.param .b64 r) __cudaCDP2GetErrorString(.param .b32 c);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
.visible .entry memory(.param .u64 out) {
	.local .u64 pair[2]; .reg .b64 %o, %p, %s, %l, %q; .reg .b32 %r, %all;
	ld.param.u64 %o, [out]; mov.u64 %l, pair; cvta.local.u64 %l, %l; add.u64 %q, %l, 8; mov.u32 %all, 0;
	{ .param .b64 p, n; .param .b32 r; st.param.b64 [p], %l; st.param.b64 [n], 64; call (r), __cudaCDP2Malloc, (p, n); ld.param.b32 %r, [r]; or.b32 %all, %all, %r; }
	ld.u64 %p, [%l];
	{ .param .b64 s; .param .b32 f, r; st.param.b64 [s], %q; st.param.b32 [f], 1; call (r), __cudaCDP2StreamCreateWithFlags, (s, f); ld.param.b32 %r, [r]; or.b32 %all, %all, %r; }
	ld.u64 %s, [%q];
	{ .param .b64 p, n, s; .param .b32 v, r; st.param.b64 [p], %p; st.param.b32 [v], 3; st.param.b64 [n], 64; st.param.b64 [s], %s; call (r), __cudaCDP2MemsetAsync, (p, v, n, s); ld.param.b32 %r, [r]; or.b32 %all, %all, %r; }
	add.u64 %q, %o, 8;
	{ .param .b64 p, q, n, s; .param .b32 k, r; st.param.b64 [p], %q; st.param.b64 [q], %p; st.param.b64 [n], 60; st.param.b32 [k], 3; st.param.b64 [s], %s; call (r), __cudaCDP2MemcpyAsync, (p, q, n, k, s); ld.param.b32 %r, [r]; or.b32 %all, %all, %r; }
	{ .param .b64 s; .param .b32 r; st.param.b64 [s], %s; call (r), __cudaCDP2StreamDestroy, (s); ld.param.b32 %r, [r]; or.b32 %all, %all, %r; }
	{ .param .b64 p, n; .param .b32 r; st.param.b64 [p], %l; st.param.b64 [n], 16777216; call (r), __cudaCDP2Malloc, (p, n); ld.param.b32 %r, [r]; shl.b32 %r, %r, 8; or.b32 %all, %all, %r; }
	{ .param .b64 p, n; .param .b32 r; st.param.b64 [p], %l; st.param.b64 [n], 64; call (r), __cudaCDP2Malloc, (p, n); }
	ld.u64 %p, [%l];
	{ .param .b64 p; .param .b32 r; st.param.b64 [p], %p; call (r), __cudaCDP2Free, (p); ld.param.b32 %r, [r]; or.b32 %all, %all, %r; }
	{ .param .b32 c, r; .param .b64 t; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r, [r]; st.param.b32 [c], %r; call (t), __cudaCDP2GetErrorString, (c); ld.param.b64 %p, [t]; }
	ld.u8 %r, [%p]; st.global.u32 [%o], %all; st.global.u32 [%o+4], %r;
	ret;
}`

// TestMemoryOfKernels checks the functions of the device runtime for memory and streams.
func TestMemoryOfKernels(t *testing.T) {
	r := newLinkedRig(t, memoryPTX)
	out := r.buffer(make([]byte, 72))
	r.launch("memory", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out)
	r.expect(out, 18, func(i int) uint32 {
		switch i {
		case 0:
			return 2 << 8 // only the allocation of more than there is fails
		case 1:
			return 'n'
		case 17:
			return 0
		}
		return 0x03030303
	})
}

// newLinkedRig returns a rig with the kernels of objects that are linked.
func newLinkedRig(t *testing.T, sources ...string) *rig {
	t.Helper()
	r := newRig(t, ptxHead)
	if card(t) != nil {
		t.Skip("the library that has the functions on a card is NVIDIA's")
	}
	l := &abi.LinkImage{}
	for i, src := range sources {
		l.Objects = append(l.Objects, abi.LinkObject{Type: 1, Name: fmt.Sprint("object", i), Image: []byte(src + "\x00")})
	}
	_, funcs, info, err := r.c.ModuleLoad(l.Append(nil), worker.ModuleOptions{})
	if err != nil {
		t.Fatalf("load: %v: %s", err, info.ErrorLog)
	}
	for i, f := range info.Functions {
		r.funcs[f.Name] = funcs[i]
	}
	return r
}

// TestKernelsLaunchKernels checks in which order kernels run that kernels launch, and the
// limits and errors of their launches.
func TestKernelsLaunchKernels(t *testing.T) {
	r := newLinkedRig(t, childrenPTX)
	for _, c := range []struct {
		name, kernel string
		threads      uint32
		label        uint32
		stream       uint64
		want         []uint32
	}{
		{"one after another", "tree", 1, 1, 0, []uint32{5, 1, 2, 4, 5, 3}},
		{"the first in the stream for the end", "tree", 1, 1, 3, []uint32{5, 1, 3, 2, 5, 4}},
		{"by two threads", "tree", 2, 1, 0, []uint32{10, 1, 1, 2, 4, 5, 2, 4, 5, 3, 3}},
		{"too deep", "chain", 1, 0, 0, []uint32{2, 24, 65}},
		{"too many", "many", 1, 1, 0, []uint32{2048, 2048, 69}},
		{"of too many threads", "many", 1, 2000, 0, []uint32{0, 0, 9}},
	} {
		out := r.buffer(make([]byte, 4*16))
		params := binary.LittleEndian.AppendUint64(nil, out)
		params = binary.LittleEndian.AppendUint32(params, c.label)
		params = binary.LittleEndian.AppendUint64(append(params, 0, 0, 0, 0), c.stream)
		if err := r.c.Launch(nil, r.funcs[c.kernel], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{c.threads, 1, 1}, Params: params}, nil); err != nil {
			t.Fatal(err)
		}
		t.Log(c.name)
		r.expect(out, len(c.want), func(i int) uint32 { return c.want[i] })
	}
}
