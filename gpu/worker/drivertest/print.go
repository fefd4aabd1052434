package drivertest

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// system is a module whose kernels call functions that the device provides (PTX
// Writer's Guide to Interoperability, "System Calls").
//
//	says(u64 out)   prints a line and stores what vprintf returns; then of no format
//	fails()         fails an assertion
const system = `.version 6.0
.target sm_50
.address_size 64

.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 args);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
.global .align 1 .b8 format[14] = {37, 100, 32, 37, 115, 32, 37, 46, 50, 102, 33, 10, 0, 0};
.global .align 1 .b8 word[5] = {116, 101, 120, 116, 0};

.visible .entry says(.param .u64 out)
{
	.local .align 8 .b8 args[24];
	.reg .b64 %rd<6>;
	.reg .b32 %r<4>;
	ld.param.u64 %rd1, [out];
	st.local.u32 [args], 7;
	mov.u64 %rd2, word;
	cvta.global.u64 %rd2, %rd2;
	st.local.u64 [args+8], %rd2;
	st.local.f64 [args+16], 0d3FF8000000000000;
	mov.u64 %rd3, format;
	cvta.global.u64 %rd3, %rd3;
	mov.u64 %rd4, args;
	cvta.local.u64 %rd4, %rd4;
	{
	.param .b64 f;
	.param .b64 a;
	.param .b32 n;
	st.param.b64 [f], %rd3;
	st.param.b64 [a], %rd4;
	call.uni (n), vprintf, (f, a);
	ld.param.b32 %r1, [n];
	}
	{
	.param .b64 f;
	.param .b64 a;
	.param .b32 n;
	mov.u64 %rd5, 0;
	st.param.b64 [f], %rd5;
	st.param.b64 [a], %rd5;
	call.uni (n), vprintf, (f, a);
	ld.param.b32 %r2, [n];
	}
	st.global.u32 [%rd1], %r1;
	st.global.u32 [%rd1+4], %r2;
	ret;
}

.visible .entry fails()
{
	.reg .b64 %rd<3>;
	.reg .b32 %r<2>;
	mov.u64 %rd1, word;
	cvta.global.u64 %rd1, %rd1;
	mov.u64 %rd2, 1;
	mov.u32 %r1, 42;
	{
	.param .b64 a;
	.param .b64 b;
	.param .b32 c;
	.param .b64 d;
	.param .b64 e;
	st.param.b64 [a], %rd1;
	st.param.b64 [b], %rd1;
	st.param.b32 [c], %r1;
	st.param.b64 [d], %rd1;
	st.param.b64 [e], %rd2;
	call.uni __assertfail, (a, b, c, d, e);
	}
	ret;
}
`

// testPrintAndAssert checks that the output of kernels reaches the listener, if the
// driver supports that, and that vprintf returns the same everywhere. A failed
// assertion fails only its context.
func testPrintAndAssert(x *tester) {
	ctx, other := x.context(), x.context()
	var out, errs strings.Builder
	p, prints := ctx.(worker.Printer)
	if prints {
		p.PrintTo(func(to uint32, text []byte) {
			if to == abi.OutputStderr {
				errs.Write(text)
			} else {
				out.Write(text)
			}
		})
	}
	_, funcs, info, err := ctx.ModuleLoad([]byte(system), worker.ModuleOptions{})
	x.check(err)
	k := map[string]worker.Function{}
	for i, f := range info.Functions {
		k[f.Name] = funcs[i]
	}
	returned := x.alloc(ctx, 8)
	x.check(x.await(func(done func(error)) error { return ctx.Launch(nil, k["says"], one(returned), done) }))
	if got := x.read(ctx, nil, returned, 8); binary.LittleEndian.Uint32(got) != 3 || binary.LittleEndian.Uint32(got[4:]) != 1<<32-1 {
		x.Errorf("vprintf returned % x, want 3 and -1", got)
	}
	x.want(x.await(func(done func(error)) error { return ctx.Launch(nil, k["fails"], one(), done) }), abi.ErrAssert)
	if err := x.sync(ctx); !errors.Is(err, abi.ErrAssert) {
		x.Errorf("Notify after the failed assertion = %v, want %v", err, abi.ErrAssert)
	}
	x.check(x.sync(other))
	if want := "text:42: text: block: [0,0,0], thread: [0,0,0] Assertion `text` failed.\n"; prints && (out.String() != "7 text 1.50!\n" || errs.String() != want) {
		x.Errorf("output = %q and %q, want %q and %q", out.String(), errs.String(), "7 text 1.50!\n", want)
	}
}
