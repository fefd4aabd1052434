package soft_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// TestAlloca checks that each lane can allocate memory of its own size in a loop, that
// its allocations do not overlap, and that stackrestore frees them, so that a loop can
// repeat that without end.
func TestAlloca(t *testing.T) {
	src := ptxHead + callKernel(`.reg .u32 %sp, %prev, %at, %size, %i, %n;
	mov.u32 %out, 0; mov.u32 %n, 0;
	AGAIN: stacksave.u32 %sp; mov.u32 %i, 0; mov.u32 %prev, 0;
	L: add.u32 %size, %thread, %i; mul.lo.u32 %size, %size, 4; add.u32 %size, %size, 8; alloca.u32 %at, %size, 16;
	and.b32 %r0, %at, 15; add.u32 %out, %out, %r0;
	st.local.u32 [%at], %i; st.local.u32 [%at+4], %prev; mov.u32 %prev, %at; sub.u32 %r1, %size, 4; add.u32 %r1, %r1, %at; setp.gt.u32 %p1, %size, 12; @%p1 st.local.u32 [%r1], 77;
	add.u32 %i, %i, 1; setp.lt.u32 %p0, %i, 10; @%p0 bra L;
	F: ld.local.u32 %r0, [%prev]; add.u32 %out, %out, %r0; ld.local.u32 %prev, [%prev+4]; setp.ne.u32 %p0, %prev, 0; @%p0 bra F;
	stackrestore.u32 %sp; add.u32 %n, %n, 1; setp.lt.u32 %p0, %n, 100; @%p0 bra AGAIN;
	stacksave.u32 %prev; setp.ne.u32 %p0, %sp, %prev; @%p0 mov.u32 %out, 1;`)
	runCalls(t, src, 70, func(uint32) uint32 { return 100 * 45 })
}

// TestAllocaInFunctions checks that a return frees what a function has allocated, for a
// function that is called directly, one that recurs and one that is called by its
// address, and that their callers' allocations keep their values.
func TestAllocaInFunctions(t *testing.T) {
	src := ptxHead + `.func (.param .u32 r) fill (.param .u32 n) {
	.reg .u32 %n, %v; .reg .u64 %at, %size; .reg .pred %p;
	ld.param.u32 %n, [n]; mul.wide.u32 %size, %n, 4; add.u64 %size, %size, 4; alloca.u64 %at, %size; mov.u32 %v, 0;
	st.local.u32 [%at], %n; setp.eq.u32 %p, %n, 0; @%p bra DONE;
	{ .param .u32 less, got; sub.u32 %v, %n, 1; st.param.u32 [less], %v; call (got), fill, (less); ld.param.u32 %v, [got]; }
	DONE: ld.local.u32 %n, [%at]; add.u32 %v, %v, %n; st.param.u32 [r], %v; ret; }
.func (.param .u32 r) big (.param .u32 n) {
	.reg .u32 %n, %at, %other;
	ld.param.u32 %n, [n]; alloca.u32 %at, 9000, 256; st.local.u32 [%at], %n; alloca.u32 %other, 100; st.local.u32 [%other], 5;
	ld.local.u32 %n, [%at]; add.u32 %n, %n, 1; st.param.u32 [r], %n; ret; }
.global .u64 table[1] = {big};
` + callKernel(`.reg .u32 %at, %sp, %i; .reg .pred %q;
	alloca.u32 %at, 8; st.local.u32 [%at], 1000; mov.u32 %i, 0; mov.u32 %out, 0; stacksave.u32 %sp;
	mov.u64 %d1, table; ld.global.u64 %d2, [%d1]; P: .callprototype (.param .u32 _) _ (.param .u32 _);
	L: { .param .u32 in, back; and.b32 %r2, %thread, 15; st.param.u32 [in], %r2; call (back), fill, (in); ld.param.u32 %r0, [back]; } add.u32 %out, %out, %r0;
	{ .param .u32 in, back; st.param.u32 [in], %i; call (back), big, (in); ld.param.u32 %r0, [back]; } add.u32 %out, %out, %r0;
	{ .param .u32 in, back; st.param.u32 [in], %i; call (back), %d2, (in), P; ld.param.u32 %r0, [back]; } add.u32 %out, %out, %r0;
	add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 20; @%q bra L;
	ld.local.u32 %r0, [%at]; add.u32 %out, %out, %r0; stacksave.u32 %i; setp.ne.u32 %q, %i, %sp; @%q mov.u32 %out, 1;`)
	runCalls(t, src, 40, func(tid uint32) uint32 {
		n := tid & 15
		return 20*n*(n+1)/2 + 2*(20*19/2+20) + 1000
	})
}

// TestAllocaOverflow checks that an allocation that is too large, and one with a pointer
// that stacksave has not returned, end the kernel.
func TestAllocaOverflow(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"size":      {"alloca.u32 %out, 40000;", "stack overflow: alloca of 40000 bytes"},
		"huge":      {"alloca.u64 %d0, -8;", "stack overflow: alloca of 18446744073709551608 bytes"},
		"alignment": {"alloca.u32 %out, 8, 8388608; alloca.u32 %out, 8, 8388608;", "stack overflow: alloca of 8 bytes with alignment 8388608"},
		"loop":      {"L: alloca.u32 %out, 128; bra L;", "stack overflow: alloca of 128 bytes"},
		"restored":  {"stackrestore.u32 77777777; alloca.u32 %out, 8;", "alloca: the stack pointer is 0x4a2cb71, want a value that stacksave has returned"},
	} {
		if err := fault(t, ptxHead+callKernel(c.body)); !errors.Is(err, abi.ErrLaunchFailed) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("alloca with a wrong %s: error %v, want %v with %q", name, err, abi.ErrLaunchFailed, c.want)
		}
	}
}
