package soft_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// callKernel returns a kernel that stores %out, a u32, for each thread; %thread is its
// index.
func callKernel(body string) string {
	return `.visible .entry k(.param .u64 to) {
	.reg .u32 %r<20>; .reg .u32 %thread, %out; .reg .u64 %d<20>; .reg .u64 %to; .reg .pred %p<4>;
	ld.param.u64 %to, [to]; mov.u32 %thread, %tid.x; mad.wide.u32 %to, %thread, 4, %to;
` + body + `
	st.global.u32 [%to], %out;
	ret;
}`
}

// runCalls executes the kernel k of a module in one block and compares its results.
func runCalls(t *testing.T, src string, threads int, want func(tid uint32) uint32) {
	t.Helper()
	r := newRig(t, src)
	out := r.buffer(make([]byte, 4*threads))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0, out)
	r.expect(out, threads, func(i int) uint32 { return want(uint32(i)) })
}

// fault executes the kernel and returns its error.
func fault(t *testing.T, src string) error {
	t.Helper()
	r := newRig(t, src)
	out := r.buffer(make([]byte, 4*32))
	done := make(chan error, 1)
	if err := r.c.Launch(nil, r.funcs["k"], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: pack(out)},
		func(err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	return patience.Receive(t, time.Minute, "the kernel ends", done)
}

const threeFunctions = `
.func (.param .u32 r) triple (.param .u32 x) { .reg .u32 %a; ld.param.u32 %a, [x]; mul.lo.u32 %a, %a, 3; st.param.u32 [r], %a; ret; }
.func (.param .u32 r) negate (.param .u32 x) { .reg .u32 %a; ld.param.u32 %a, [x]; neg.s32 %a, %a; st.param.u32 [r], %a; ret; }
.func (.param .u32 r) either (.param .u32 x) {
	.reg .u32 %a; .reg .pred %p; ld.param.u32 %a, [x]; setp.gt.u32 %p, %a, 20; @%p bra BIG; add.u32 %a, %a, 1000;
	BIG: st.param.u32 [r], %a; ret;
}
.global .u64 table[3] = {triple, negate, either};
`

// TestCallOfAddress checks that lanes of one warp can call different functions by their
// addresses, from a variable's initializer and from mov, and converge again.
func TestCallOfAddress(t *testing.T) {
	src := ptxHead + threeFunctions + callKernel(`
	rem.u32 %r0, %thread, 3; mul.wide.u32 %d0, %r0, 8; mov.u64 %d1, table; add.u64 %d1, %d1, %d0; ld.global.u64 %d2, [%d1];
	setp.eq.u32 %p0, %thread, 40; @%p0 mov.u64 %d2, triple;
	P: .callprototype (.param .u32 _) _ (.param .u32 _);
	{ .param .u32 in; .param .u32 back; st.param.u32 [in], %thread; call (back), %d2, (in), P; ld.param.u32 %out, [back]; }
	bar.sync 0; activemask.b32 %r1; setp.ne.u32 %p1, %r1, -1; @%p1 mov.u32 %out, 77;`)
	runCalls(t, src, 64, func(tid uint32) uint32 {
		switch {
		case tid%3 == 0 || tid == 40:
			return 3 * tid
		case tid%3 == 1:
			return -tid
		case tid > 20:
			return tid
		}
		return tid + 1000
	})
}

// TestRecursion checks that each lane can recurse to its own depth, in two functions
// that call each other, and that values that are live across a call are preserved.
func TestRecursion(t *testing.T) {
	src := ptxHead + `
.func (.param .u32 r) odd (.param .u32 n);
.func (.param .u32 r) sum (.param .u32 n) {
	.reg .u32 %n, %v; .reg .pred %p;
	ld.param.u32 %n, [n]; mov.u32 %v, 0; setp.eq.u32 %p, %n, 0; @%p bra DONE;
	{ .param .u32 less; .param .u32 got; sub.u32 %v, %n, 1; st.param.u32 [less], %v; call (got), odd, (less); ld.param.u32 %v, [got]; }
	add.u32 %v, %v, %n;
	DONE: st.param.u32 [r], %v; ret;
}
.func (.param .u32 r) odd (.param .u32 n) {
	.reg .u32 %n, %v; .reg .pred %p, %q;
	ld.param.u32 %n, [n]; mov.u32 %v, 0; setp.eq.u32 %p, %n, 0; and.b32 %v, %n, 1; setp.ne.u32 %q, %v, 0; mov.u32 %v, 0; @%p bra DONE;
	{ .param .u32 less; .param .u32 got; sub.u32 %v, %n, 1; st.param.u32 [less], %v; call (got), sum, (less); ld.param.u32 %v, [got]; }
	add.u32 %v, %v, %n; @%q add.u32 %v, %v, 100;
	DONE: st.param.u32 [r], %v; ret;
}` + callKernel(`{ .param .u32 in; .param .u32 back; st.param.u32 [in], %thread; call (back), sum, (in); ld.param.u32 %out, [back]; }`)
	runCalls(t, src, 50, func(tid uint32) uint32 {
		v := tid * (tid + 1) / 2
		for n, odd := tid, false; n > 0; n, odd = n-1, !odd {
			if odd && n%2 == 1 {
				v += 100
			}
		}
		return v
	})
}

// TestRecursionWithLocalVariables checks that each call has its own .local variables,
// whose addresses are valid in the functions it calls: every level adds to a variable
// of the level before, by a generic address and by one of local memory.
func TestRecursionWithLocalVariables(t *testing.T) {
	src := ptxHead + `
.func down (.param .u32 n, .param .u64 sum, .param .u32 count) {
	.local .align 16 .b8 own[48]; .local .u32 depth;
	.reg .u32 %n, %m, %v, %c, %a; .reg .u64 %to, %at; .reg .pred %p;
	ld.param.u32 %n, [n]; ld.param.u64 %to, [sum]; ld.param.u32 %c, [count];
	st.local.u32 [own+4], %n; st.local.u32 [depth], 0; mov.u32 %a, depth;
	setp.eq.u32 %p, %n, 0; @%p bra DONE;
	sub.u32 %m, %n, 1; mov.u64 %at, own; cvta.local.u64 %at, %at; add.u64 %at, %at, 4;
	{ .param .u32 x, z; .param .u64 y; st.param.u32 [x], %m; st.param.u64 [y], %at; st.param.u32 [z], %a; call down, (x, y, z); }
	DONE:
	ld.local.u32 %v, [own+4]; ld.u32 %m, [%to]; add.u32 %m, %m, %v; st.u32 [%to], %m;
	ld.local.u32 %v, [depth]; add.u32 %v, %v, 1; ld.local.u32 %m, [%c]; add.u32 %m, %m, %v; st.local.u32 [%c], %m;
	ret;
}` + callKernel(`
	.local .u32 sum, count; .reg .u64 %at; .reg .u32 %c;
	st.local.u32 [sum], 0; st.local.u32 [count], 0; mov.u64 %at, sum; cvta.local.u64 %at, %at; mov.u32 %c, count;
	{ .param .u32 x, z; .param .u64 y; st.param.u32 [x], %thread; st.param.u64 [y], %at; st.param.u32 [z], %c; call down, (x, y, z); }
	ld.local.u32 %out, [sum]; ld.local.u32 %r0, [count]; mad.lo.u32 %out, %r0, 100000, %out;`)
	threads := 70
	if card(t) != nil {
		threads = 6 // a GPU has 1 KiB of stack per thread unless a program sets more
	}
	runCalls(t, src, threads, func(n uint32) uint32 { return 100000*(n+1) + n*(n+1)/2 })
}

// TestRecursionByAddress checks that a result may be a register, and that a function
// may call itself by its address.
func TestRecursionByAddress(t *testing.T) {
	src := ptxHead + `
.func (.reg .u32 %r) fact (.reg .u32 %n) {
	.reg .u64 %self; .reg .u32 %m, %v; .reg .pred %p;
	mov.u32 %r, 1; setp.lt.u32 %p, %n, 2; @%p ret;
	P: .callprototype (.reg .u32 _) _ (.reg .u32 _);
	sub.u32 %m, %n, 1; mov.u64 %self, fact; call (%v), %self, (%m), P; mul.lo.u32 %r, %v, %n; ret;
}` + callKernel(`call (%out), fact, (%thread);`)
	runCalls(t, src, 13, func(tid uint32) uint32 {
		v := uint32(1)
		for n := uint32(2); n <= tid; n++ {
			v *= n
		}
		return v
	})
}

func TestCallFaults(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      error
		text      string
	}{
		{"no function", threeFunctions + callKernel(`mov.u64 %d0, triple; add.u64 %d0, %d0, 4; { .param .u32 a, b; call (b), %d0, (a), P; } P: .callprototype _;`),
			abi.ErrInvalidPC, "want that of a function with the parameters of the call"},
		{"other parameters", threeFunctions + callKernel(`mov.u64 %d0, triple; { .param .u32 a; call %d0, (a), P; } P: .callprototype _;`),
			abi.ErrInvalidPC, "line 15: call %d0, (a), P;"},
		{"endless", `.func f() { call f; ret; }` + callKernel(`call f;`), abi.ErrLaunchFailed, "call of function f at a depth of 1024 calls"},
		{"stack", `.func f() { .local .b8 x[4096]; call f; ret; }` + callKernel(`call f;`), abi.ErrLaunchFailed, "stack overflow: function f needs 4096 bytes at offset 32768 of the thread's 32768"},
		{"large frame", `.func f() { .local .b8 x[40000]; call f; ret; }` + callKernel(`call f;`), abi.ErrLaunchFailed, "stack overflow: function f needs 40000 bytes at offset 0 of the thread's 32768"},
		{"free", `.extern .func free(.param .u64 p);` + callKernel(`{ .param .u64 a; st.param.u64 [a], %to; call free, (a); }`), abi.ErrIllegalAddress, "want one that malloc has returned"},
	} {
		if err := fault(t, ptxHead+c.src); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: kernel error = %v, want %v with %q", c.name, err, c.want, c.text)
		}
	}
}

// TestBuiltins checks that malloc returns memory of its own to each lane until there is
// no more, and that freed memory is allocated again.
func TestBuiltins(t *testing.T) {
	src := ptxHead + `.extern .func (.param .u64 r) malloc (.param .u64 n); .extern .func free (.param .u64 p);` + callKernel(`
	mov.u32 %out, 0; mov.u32 %r1, 0;
	AGAIN:
	{ .param .u64 n, r; mov.u64 %d0, 262144; st.param.u64 [n], %d0; call (r), malloc, (n); ld.param.u64 %d1, [r]; }
	setp.eq.u64 %p0, %d1, 0; @%p0 bra NONE;
	st.u32 [%d1], %thread; st.u32 [%d1+262140], %thread; ld.u32 %r2, [%d1]; add.u32 %out, %out, %r2;
	NONE:
	{ .param .u64 p; st.param.u64 [p], %d1; call free, (p); }
	add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra AGAIN;
	{ .param .u64 n, r; mov.u64 %d0, 16777216; st.param.u64 [n], %d0; call (r), malloc, (n); ld.param.u64 %d1, [r]; }
	setp.ne.u64 %p0, %d1, 0; @%p0 mov.u32 %out, 99999;`)
	runCalls(t, src, 32, func(tid uint32) uint32 { return 4 * tid })
}

// TestLinkedImage checks that several objects are linked to one module, and that an
// error names the object.
func TestLinkedImage(t *testing.T) {
	load := func(objects ...string) (*rig, error) {
		l := &abi.LinkImage{}
		for i, src := range objects {
			l.Objects = append(l.Objects, abi.LinkObject{Type: 1, Name: fmt.Sprint("object", i), Image: []byte(ptxHead + src + "\x00")})
		}
		r := newRig(t, ptxHead)
		_, funcs, info, err := r.c.ModuleLoad(l.Append(nil), worker.ModuleOptions{})
		for i, f := range info.Functions {
			r.funcs[f.Name] = funcs[i]
		}
		if err != nil && !strings.Contains(info.ErrorLog, "object") {
			t.Errorf("error log = %q, want the name of an object", info.ErrorLog)
		}
		return r, err
	}
	r, err := load(`.extern .func (.param .u32 r) f (.param .u32 x); .extern .global .u32 base;`+
		callKernel(`{ .param .u32 in; .param .u32 back; st.param.u32 [in], %thread; call (back), f, (in); ld.param.u32 %out, [back]; } ld.global.u32 %r0, [base]; add.u32 %out, %out, %r0;`),
		`.visible .global .u32 base = 500; .visible .func (.param .u32 r) f (.param .u32 x) { .reg .u32 %a; ld.param.u32 %a, [x]; shl.b32 %a, %a, 1; st.param.u32 [r], %a; ret; }`)
	if err != nil {
		t.Fatal(err)
	}
	out := r.buffer(make([]byte, 4*32))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, out)
	r.expect(out, 32, func(i int) uint32 { return uint32(2*i + 500) })
	r, err = load("", callKernel("frob.u32 %out, 1;"))
	if err != nil {
		t.Fatal(err)
	}
	err = r.c.Launch(nil, r.funcs["k"], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: pack(out)}, nil)
	if want := "object1: line 7: not implemented: opcode frob: frob.u32 %out, 1;"; !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(err.Error(), want) {
		t.Errorf("error of the launch = %v, want %v with %q", err, abi.ErrNoBinaryForGPU, want)
	}
	for _, c := range []struct{ a, b, want string }{
		{callKernel("frob.u32 %out 1;"), "", "object0: line 7: expected"},
		{"", ".func f() { .reg .u32 %r; bad }", "object1: line 4: "},
		{".extern .func f(); .entry k() { call f; ret; }", "", "object0: line 4: unresolved extern function f"},
		{".visible .func f() { ret; }", ".visible .func f() { ret; }", "object1: line 4: function f is already defined in object0, line 4"},
	} {
		if _, err := load(c.a, c.b); !errors.Is(err, abi.ErrInvalidPTX) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("link of %q and %q: error %v, want %q", c.a, c.b, err, c.want)
		}
	}
}

// TestGCCInstructions checks forms of instructions that GCC writes.
func TestGCCInstructions(t *testing.T) {
	src := ptxHead + callKernel(`
	.reg .v2 .u32 %v; .reg .v2 .u64 %w;
	mov.v2.u32 %v, {%thread, 7}; mov.v2.u32 %v, {%v.y, %v.x};
	mov.u64 %d0, 5; mov.v2.u64 %w, {%d0, 6};
	mov.u32 %r5, %v.x; vsub.u32.u32.u32.add %r0, %r5, %thread, 1000; add.u32 %r1, %r0, %v.x;
	set.u32.ge.s32 %r2, %thread, 3; set.ge.u32.s32 %r3, %thread, 3; xor.b32 %r3, %r2, %r3;
	cvt.u32.u64 %r4, %w.y; add.u32 %out, %r1, %r2; add.u32 %out, %out, %r3; add.u32 %out, %out, %r4;`)
	runCalls(t, src, 32, func(tid uint32) uint32 {
		v := 7 - tid + 1000 + 7 + 6
		if tid >= 3 {
			v--
		}
		return v
	})
}

// TestParametersInRegistersAndMemory checks calls between functions whose parameters
// are in registers and functions whose parameters are in memory: those that are read in
// parts, by address, or as vectors.
func TestParametersInRegistersAndMemory(t *testing.T) {
	src := ptxHead + `
.func (.param .u32 r) low (.param .u32 x) { .reg .u32 %a; ld.param.u8 %a, [x]; st.param.u32 [r], %a; ret; }
.func (.param .b64 r) swap (.param .b64 x) {
	.reg .u32 %a, %b; ld.param.v2.u32 {%a, %b}, [x]; st.param.u32 [r], %b; st.param.u32 [r+4], %a; ret;
}
.func (.param .b64 r) same (.param .b64 x) { .reg .u64 %a; ld.param.u64 %a, [x]; st.param.b64 [r], %a; ret; }
.func (.param .u32 r) twice (.param .u32 x) {
	.reg .u32 %a; .param .u32 in, out; ld.param.u32 %a, [x]; st.param.u32 [in], %a;
	call (out), low, (in); ld.param.u32 %a, [out]; add.u32 %a, %a, %a; st.param.u32 [r], %a; ret;
}
` + callKernel(`
	mul.lo.u32 %r0, %thread, 0x12345; .param .u32 in, out; .param .b64 wide, back;
	setp.lt.u32 %p0, %thread, 20; selp.b32 %r1, %r0, 7, %p0; st.param.u32 [in], %r1;
	call (out), twice, (in); ld.param.u32 %out, [out];
	cvt.u64.u32 %d0, %r0; st.param.b64 [wide], %d0; call (back), swap, (wide); ld.param.b64 %d1, [back];
	st.param.b64 [wide], %d1; call (back), same, (wide); ld.param.u32 %r1, [back+4]; add.u32 %out, %out, %r1;`)
	runCalls(t, src, 48, func(tid uint32) uint32 {
		n := tid * 0x12345
		in := n
		if tid >= 20 {
			in = 7
		}
		return 2*(in&0xff) + n
	})
}
