package soft_test

import (
	"fmt"
	"strings"
	"testing"
)

// Threads of a block exchange values through shared memory between barriers. Whole warps
// pass barriers in machine code only where no other threads of the block have to arrive:
// here some warps are not whole, or some lanes, or some warps, are elsewhere before the
// barrier.

// exchanges is how often a thread passes on its value.
const exchanges = 5

// exchangeProgram returns a kernel whose threads add the values of the threads that are
// 37 further, times 3 their own. In the given exchange, the lanes for which a predicate
// of thread %t is true execute an instruction for which there is no machine code.
func exchangeProgram(at int, predicate string) string {
	var w strings.Builder
	w.WriteString(ptxHead + `.entry k(.param .u64 out) {
.shared .align 4 .b8 sh[4096];
.reg .b32 %t, %n, %c, %i, %v, %u, %a, %b, %z; .reg .b64 %o, %w; .reg .pred %p;
mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %i, %c, %n, %t;
ld.param.u64 %o, [out]; mad.wide.u32 %w, %i, 4, %o; ld.global.u32 %v, [%w];
mov.u32 %z, sh; mad.lo.u32 %a, %t, 4, %z; add.u32 %b, %t, 37; rem.u32 %b, %b, %n; mad.lo.u32 %b, %b, 4, %z;
`)
	for i := range exchanges {
		if i == at {
			fmt.Fprintf(&w, "%s\n@!%%p bra E;\nld.volatile.global.u32 %%u, [%%w]; add.u32 %%v, %%v, 1;\nE:\n", predicate)
		}
		w.WriteString("st.shared.u32 [%a], %v; bar.sync 0; ld.shared.u32 %u, [%b]; mad.lo.u32 %v, %v, 3, %u; bar.sync 0;\n")
	}
	return w.String() + "st.global.u32 [%w], %v;\nret;\n}\n"
}

// exchanged returns the values of a block of threads after such a kernel.
func exchanged(v []uint32, at int, more func(thread int) bool) []uint32 {
	for i := range exchanges {
		next := make([]uint32, len(v))
		for t := range v {
			if i == at && more(t) {
				v[t]++
			}
		}
		for t := range v {
			next[t] = 3*v[t] + v[(t+37)%len(v)]
		}
		v = next
	}
	return v
}

func TestBarriersOfParts(t *testing.T) {
	const blocks = 6
	for _, c := range []struct {
		name, predicate string
		more            func(thread int) bool
	}{
		{"no lanes", "setp.gt.u32 %p, %t, 2000;", func(int) bool { return false }},
		{"one lane", "setp.eq.u32 %p, %t, 45;", func(t int) bool { return t == 45 }},
		{"one warp", "shr.u32 %u, %t, 5; setp.eq.u32 %p, %u, 1;", func(t int) bool { return t/32 == 1 }},
	} {
		for _, threads := range []int{96, 104, 256} {
			for _, at := range []int{0, 3} {
				t.Run(fmt.Sprintf("%s, exchange %d of %d threads", c.name, at, threads), func(t *testing.T) {
					r := newRig(t, exchangeProgram(at, c.predicate))
					for round := range 3 { // machine code is generated in two steps
						in, want := make([]uint32, blocks*threads), []uint32(nil)
						for i := range in {
							in[i] = uint32(i*7 + round)
						}
						out := r.buffer(raw(in))
						for b := range blocks {
							want = append(want, exchanged(in[b*threads:][:threads:threads], at, c.more)...)
						}
						r.launch("k", [3]uint32{blocks, 1, 1}, [3]uint32{uint32(threads), 1, 1}, 0, out)
						r.expect(out, len(want), func(i int) uint32 { return want[i] })
					}
				})
			}
		}
	}
}
