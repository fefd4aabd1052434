package soft_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

const mathFunctions = `
.extern .func (.param .b32 r) __nv_sinf (.param .b32 x);
.extern .func (.param .b64 r) __nv_pow (.param .b64 x, .param .b64 y);
.extern .func (.param .b64 r) __nv_jn (.param .b32 n, .param .b64 x);
.extern .func (.param .b64 r) __nv_norm4d (.param .b64 x, .param .b64 y, .param .b64 z, .param .b64 t);
.extern .func __nv_sincos (.param .b64 x, .param .b64 s, .param .b64 c);
.extern .func (.reg .b32 r) __nv_frexpf (.reg .b32 x, .reg .b64 e);
.extern .func (.param .b32 r) __nv_popcll (.param .b64 x);
.weak .func (.param .b64 r) __nv_log (.param .b64 x) { st.param.f64 [r], 0d0000000000000000; ret; }
.weak .func (.param .b64 r) __nv_none (.param .b64 x) { st.param.f64 [r], 0d4059000000000000; ret; }
`

// TestMathFunctions checks that functions of libdevice that no object defines are
// provided by the device: with values and results of every size, in parameters and in
// registers, and with pointers to each kind of memory. One replaces a weak definition.
func TestMathFunctions(t *testing.T) {
	r := newRig(t, ptxHead+mathFunctions+`.visible .entry k(.param .u64 to) {
	.local .align 8 .b64 own[2]; .shared .align 8 .b64 all[64];
	.reg .u32 %t, %e; .reg .f32 %f<4>; .reg .f64 %d<20>; .reg .u64 %to, %a<6>; .reg .b32 %i; .reg .pred %p;
	ld.param.u64 %to, [to]; mov.u32 %t, %tid.x; mad.wide.u32 %to, %t, 80, %to; cvt.rn.f64.u32 %d0, %t; cvt.rn.f32.u32 %f0, %t;
	{ .param .b32 x, y; st.param.f32 [x], %f0; call.uni (y), __nv_sinf, (x); ld.param.f32 %f1, [y]; }
	st.global.f32 [%to], %f1;
	{ .param .b64 x, y, z; st.param.f64 [x], %d0; st.param.f64 [y], 0d3FF8000000000000; call.uni (z), __nv_pow, (x, y); ld.param.f64 %d1, [z]; }
	st.global.f64 [%to+8], %d1;
	{ .param .b64 x, z; .param .b32 n; st.param.b32 [n], 2; st.param.f64 [x], %d0; call.uni (z), __nv_jn, (n, x); ld.param.f64 %d2, [z]; }
	st.global.f64 [%to+16], %d2;
	{ .param .b64 x, y, z, w, q; st.param.f64 [x], %d0; st.param.f64 [y], %d0; st.param.f64 [z], %d0; st.param.f64 [w], %d0;
	  call.uni (q), __nv_norm4d, (x, y, z, w); ld.param.f64 %d3, [q]; }
	st.global.f64 [%to+24], %d3;
	mov.u64 %a0, own; cvta.local.u64 %a0, %a0; mov.u64 %a1, all; cvta.shared.u64 %a1, %a1; mad.wide.u32 %a1, %t, 8, %a1;
	{ .param .b64 x, s, c; st.param.f64 [x], %d0; st.param.u64 [s], %a0; st.param.u64 [c], %a1; call.uni __nv_sincos, (x, s, c); }
	ld.local.f64 %d4, [own]; ld.f64 %d5, [%a1]; st.global.f64 [%to+32], %d4; st.global.f64 [%to+40], %d5;
	add.u64 %a2, %to, 52;
	setp.ne.u32 %p, %t, 7;
	@%p call (%f2), __nv_frexpf, (%f0, %a2);
	@%p st.global.f32 [%to+48], %f2;
	{ .param .b64 x; .param .b32 n; st.param.f64 [x], %d0; call.uni (n), __nv_popcll, (x); ld.param.b32 %i, [n]; }
	st.global.u32 [%to+56], %i;
	{ .param .b64 x, z; st.param.f64 [x], %d0; call.uni (z), __nv_log, (x); ld.param.f64 %d6, [z]; }
	st.global.f64 [%to+64], %d6;
	{ .param .b64 x, z; st.param.f64 [x], %d0; call.uni (z), __nv_none, (x); ld.param.f64 %d7, [z]; }
	st.global.f64 [%to+72], %d7;
	ret; }`)
	const threads = 40
	out := r.buffer(make([]byte, 80*threads))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{threads, 1, 1}, 0, out)
	b, err := r.read(out, 80*threads)
	if err != nil {
		t.Fatal(err)
	}
	for i := range threads {
		line := b[80*i:]
		single := func(at int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(line[at:]))) }
		double := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(line[at:])) }
		x := float64(i)
		fraction, exponent := math.Frexp(x)
		if i == 7 { // its guard is false
			fraction, exponent = 0, 0
		}
		for name, v := range map[string][2]float64{
			"sinf": {single(0), float64(float32(math.Sin(x)))}, "pow": {double(8), math.Pow(x, 1.5)}, "jn": {double(16), math.Jn(2, x)},
			"norm4d": {double(24), 2 * x}, "sincos' sine": {double(32), math.Sin(x)}, "sincos' cosine": {double(40), math.Cos(x)},
			"frexpf": {single(48), fraction}, "frexpf's exponent": {float64(binary.LittleEndian.Uint32(line[52:])), float64(exponent)},
			"log": {double(64), math.Log(x)}, "the module's own": {double(72), 100},
		} {
			if got, want := v[0], v[1]; got != want && !(math.Abs(got-want) <= 1e-14*math.Abs(want)+1e-16) {
				t.Errorf("%s of %d = %v, want %v", name, i, got, want)
			}
		}
	}
}

// TestMathFunctionsRefused checks that a call that does not match the function, and a
// function that libdevice does not have, refuse the kernel.
func TestMathFunctionsRefused(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"unknown": {`.extern .func (.param .b32 r) __nv_sinus (.param .b32 x);` + callKernel(
			`{ .param .b32 x, y; st.param.b32 [x], %thread; call (y), __nv_sinus, (x); ld.param.b32 %out, [y]; }`), "__nv_sinus is not in the module"},
		"size": {`.extern .func (.param .b64 r) __nv_sinf (.param .b32 x);` + callKernel(
			`{ .param .b32 x; .param .b64 y; st.param.b32 [x], %thread; call (y), __nv_sinf, (x); ld.param.b64 %d0, [y]; }`), "argument or result 1 of a function of the device must be a .param variable or register of 4 bytes"},
		"count": {`.extern .func (.param .b32 r) __nv_powf (.param .b32 x);` + callKernel(
			`{ .param .b32 x, y; st.param.b32 [x], %thread; call (y), __nv_powf, (x); ld.param.b32 %out, [y]; }`), "must have 2 arguments or results there, found 1"},
		"result": {`.extern .func (.param .b32 r) __nv_sincosf (.param .b32 x, .param .b64 s, .param .b64 c);` + callKernel(
			`{ .param .b32 x, y; .param .b64 s; st.param.b32 [x], %thread; st.param.b64 [s], %to; call (y), __nv_sincosf, (x, s, s); ld.param.b32 %out, [y]; }`), "must have 0 arguments or results there, found 1"},
		"address": {`.extern .func (.param .b32 r) __nv_sinf (.param .b32 x);` + callKernel(`mov.u64 %d0, __nv_sinf; cvt.u32.u64 %out, %d0;`), "must be the address of a function of the module in 64 bits, found __nv_sinf"},
	} {
		t.Run(name, func(t *testing.T) {
			if log, err := refusal(t, ptxHead+c.src); !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(log, c.want) {
				t.Errorf("launch error %v and log %q, want %v and a log with %q", err, log, abi.ErrNoBinaryForGPU, c.want)
			}
		})
	}
	err := fault(t, ptxHead+mathFunctions+callKernel(`{ .param .b64 x, s, c; st.param.b64 [x], 0; st.param.b64 [s], 64; st.param.b64 [c], %to; call __nv_sincos, (x, s, c); }`))
	if !errors.Is(err, abi.ErrIllegalAddress) {
		t.Errorf("kernel with an invalid pointer: error %v, want %v", err, abi.ErrIllegalAddress)
	}
}
