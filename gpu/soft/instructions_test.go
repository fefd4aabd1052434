package soft_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// atomicCases are the operations of atom and red with their types.
var atomicCases = []string{
	"add.u32", "add.s32", "add.u64", "add.f32", "add.f64", "add.noftz.f16x2", "min.u32", "min.s32", "min.u64", "min.s64",
	"max.u32", "max.s32", "max.u64", "max.s64", "and.b32", "and.b64", "or.b32", "or.b64", "xor.b32", "xor.b64",
	"exch.b32", "exch.b64", "cas.b32", "cas.b64", "inc.u32", "dec.u32",
}

// TestAtomicsAgainstOracle gives each thread its own cell, so that old values and
// results can be compared with the oracle's bit for bit; in both state spaces and by
// generic addresses.
func TestAtomicsAgainstOracle(t *testing.T) {
	for _, op := range atomicCases {
		for _, space := range []string{".global", ".shared", ""} {
			ty, reg := "b32", "%r"
			if strings.HasSuffix(op, "64") {
				ty, reg = "b64", "%d"
			}
			third := ""
			if strings.HasPrefix(op, "cas") {
				third = ", " + reg + "2"
			}
			where := map[bool]string{true: "%sa", false: "%mem"}[space == ".shared"]
			body := fmt.Sprintf("atom%s.%s %s0, [%s], %s1%s;\n", space, op, reg, where, reg, third)
			if third == "" && op[:4] != "exch" {
				body += fmt.Sprintf("red%s.%s [%s], %s2;\n", space, op, where, reg)
			}
			body += fmt.Sprintf("ld%s.%s %s3, [%s];\n", space, ty, reg, where)
			if op == "add.f64" {
				body += strings.TrimPrefix(new(randProg).oneNaN("%d3"), "; ") + fmt.Sprintf("; st%s.%s [%s], %%d3;\n", space, ty, where)
			}
			t.Run(op+space, func(t *testing.T) { differOnce(t, body) })
		}
	}
}

// TestSynchronizationAgainstOracle executes warp and block instructions that no test
// kernel uses.
func TestSynchronizationAgainstOracle(t *testing.T) {
	for name, body := range map[string]string{
		"match.any": "and.b32 %r1, %thread, 3; vote.sync.ballot.b32 %r7, 1, -1; match.any.sync.b32 %r0, %r1, -1; match.any.sync.b64 %r2, %d0, -1;",
		"match.all": "mov.u32 %r1, 5; match.all.sync.b32 %r0|%p0, %r1, -1; match.all.sync.b32 %r2|%p1, %thread, -1;",
		"redux":     "redux.sync.add.u32 %r0, %r1, -1; redux.sync.min.s32 %r1, %r2, -1; redux.sync.max.u32 %r2, %r3, -1; redux.sync.xor.b32 %r3, %r4, -1; redux.sync.and.b32 %r4, %r5, -1; redux.sync.or.b32 %r5, %r6, -1;",
		"tiles": `mov.u32 %r7, %laneid; and.b32 %r7, %r7, 28; mov.b32 %r6, 15; shl.b32 %r6, %r6, %r7;
vote.sync.ballot.b32 %r0, %p0, %r6; vote.sync.all.pred %p1, %p0, %r6; match.any.sync.b32 %r1, %r1, %r6; match.all.sync.b64 %r2|%p2, %d0, %r6;
redux.sync.add.u32 %r3, %r3, %r6; shfl.sync.down.b32 %r4|%p3, %r4, 1, 0x1c1f, %r6; bar.warp.sync %r6;`,
		// The lanes of one mask at two instructions, and two masks at one.
		"apart": `and.b32 %r7, %thread, 1; setp.ne.u32 %c, %r7, 0; @%c bra A; redux.sync.add.u32 %r0, %r1, -1; shfl.sync.idx.b32 %r2, %r3, 1, 31, -1; bra B;
A: redux.sync.add.u32 %r4, %r5, -1; shfl.sync.idx.b32 %r6, %r0, 0, 31, -1;
B: selp.b32 %r7, 0xaaaaaaaa, 0x55555555, %c; vote.sync.ballot.b32 %r1, %p0, %r7; bar.warp.sync -1; match.any.sync.b64 %r3, %d1, %r7;`,
		"cp.async": `cp.async.ca.shared.global [%sa], [%mem], 4; cp.async.ca.shared::cta.global.L2::128B [%sa+8], [%mem+8], 8; cp.async.cg.shared.global [%sa+16], [%mem+32], 16;
cp.async.commit_group; and.b32 %r7, %thread, 15; cp.async.cg.shared.global [%sa+32], [%mem+16], 16, %r7; cp.async.ca.shared.global [%sa+48], [%mem+40], 8, %p0; cp.async.ca.shared.global [%sa+56], [%mem], 8, 3;
cp.async.wait_group 0; cp.async.wait_all; ld.shared.b64 %d0, [%sa]; ld.shared.b64 %d1, [%sa+16]; ld.shared.b64 %d2, [%sa+32]; ld.shared.b64 %d3, [%sa+40]; ld.shared.b64 %d4, [%sa+48]; ld.shared.b64 %d5, [%sa+56];`,
		"vote.uni":   "vote.sync.uni.pred %p0, %p1, -1; vote.sync.all.pred %p2, !%p3, -1; vote.sync.any.pred %p1, %p3, -1;",
		"brx":        "and.b32 %r0, %thread, 3; T: .branchtargets A, B, C, A;\nbrx.idx %r0, T;\nA: add.u32 %r1, %r1, 1; bra Z;\nB: add.u32 %r1, %r1, 7; bra Z;\nC: xor.b32 %r1, %r1, %thread;\nZ: add.u32 %r1, %r1, 3;",
		"bar.red":    "bar.red.popc.u32 %r0, 0, %p0; bar.red.and.pred %p1, 1, %p0; bar.red.or.pred %p2, 2, !%p0; barrier.red.popc.u32 %r1, 3, 64, %p3;",
		"bar number": "setp.lt.u32 %c, %thread, 32; selp.b32 %r7, 3, 4, %c; mov.b32 %r6, 32; bar.red.popc.u32 %r0, %r7, %r6, %p0; bar.red.and.pred %p1, %r7, %r6, %p2; bar.sync %r7, %r6;",
		// A barrier counts warps: a partial warp counts for 32 threads.
		"bar whole":  "bar.sync 1, 64; setp.lt.u32 %c, %thread, 32; @%c bra P; st.shared.u32 [sh], 99; bar.arrive 2, 64; bra Q;\nP: bar.sync 2, 64; ld.shared.u32 %r0, [sh];\nQ: barrier.red.popc.u32 %r1, 3, 64, %p0;",
		"bar.arrive": "setp.lt.u32 %c, %thread, 32; @%c bra P; st.shared.u32 [sh], 99; membar.cta; bar.arrive 1, 64; bra Q;\nP: bar.sync 1, 64; ld.shared.u32 %r0, [sh];\nQ: bar.sync 0;",
		"shfl":       "setp.ge.u32 %c, %thread, 32; @%c bra E; shfl.sync.up.b32 %r0|%p0, %r1, 3, 0x1800, 0xffffffff; shfl.sync.down.b32 %r2|%p1, %r3, %r4, 31, -1; shfl.sync.idx.b32 %r5, %r6, %r7, 0x181f, -1;\nE:",
	} {
		t.Run(name, func(t *testing.T) { differOnce(t, body+"\n") })
	}
}

// packedConversions are the forms of cvt with several values in a register, or with
// tf32.
var packedConversions = func() (convert []string) {
	for _, round := range []string{"rn", "rz", "rn.relu", "rz.relu"} {
		convert = append(convert, "cvt."+round+".f16x2.f32 %r0, %r1, %r2", "cvt."+round+".bf16x2.f32 %r3, %r4, %r5", "cvt."+round+".f16.f32 %h0, %r6", "cvt."+round+".bf16.f32 %h1, %r7")
	}
	for _, t := range []string{"e4m3x2", "e5m2x2"} {
		for _, relu := range []string{"", ".relu"} {
			convert = append(convert, "cvt.rn.satfinite"+relu+"."+t+".f32 %h0, %r1, %r2", "cvt.rn.satfinite"+relu+"."+t+".f16x2 %h0, %r1", "cvt.rn"+relu+".f16x2."+t+" %r0, %h1")
		}
	}
	for _, how := range []string{"rna", "rna.satfinite", "rn", "rz", "rn.relu", "rz.relu"} {
		convert = append(convert, "cvt."+how+".tf32.f32 %r0, %r1")
	}
	return convert
}()

// TestFormsAgainstOracle executes forms that are not in ops.txt, or that the random
// generator does not write.
func TestFormsAgainstOracle(t *testing.T) {
	var set []string
	for i, cmp := range []string{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} {
		r, s, h, p := fmt.Sprintf("%%r%d", i%8), fmt.Sprintf("%%r%d", (i+3)%8), fmt.Sprintf("%%h%d", i%6), fmt.Sprintf("%%p%d", i%4)
		set = append(set,
			fmt.Sprintf("set.%s.f16.f16 %s, %s, %%h1", cmp, h, h), fmt.Sprintf("set.%s.ftz.u32.f16 %s, %%h2, %s", cmp, r, h),
			fmt.Sprintf("set.%s.bf16.bf16 %s, %%h3, %s", cmp, h, h), fmt.Sprintf("set.%s.s32.bf16 %s, %s, %%h4", cmp, r, h),
			fmt.Sprintf("set.%s.f16x2.f16x2 %s, %s, %%r1", cmp, r, s), fmt.Sprintf("set.%s.ftz.u32.f16x2 %s, %s, %%r2", cmp, s, r),
			fmt.Sprintf("set.%s.bf16x2.bf16x2 %s, %s, %%r3", cmp, r, s), fmt.Sprintf("set.%s.and.f16x2.f16x2 %s, %s, %%r4, %s", cmp, s, r, p),
			fmt.Sprintf("set.%s.or.f32.f32 %s, %s, %%r5, !%s", cmp, r, s, p), fmt.Sprintf("set.%s.xor.f16.f32 %s, %s, %s, %s", cmp, h, r, s, p))
	}
	var video []string
	for _, op := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax"} {
		for _, types := range []string{".u32.u32.u32", ".s32.u32.u32", ".u32.s32.u32", ".s32.s32.s32", ".u32.s32.s32"} {
			for _, then := range []string{".sat %r0, %r1, %r2", " %r1, %r2, %r3", ".add %r2, %r3, %r4, %r5", ".sat.add %r3, %r4, %r5, %r6", ".sat.min %r4, %r5, %r6, %r7", ".sat.max %r5, %r6, %r7, %r0"} {
				video = append(video, op+types+then)
			}
			for _, parts := range []string{"2", "4"} {
				video = append(video, op+parts+types+" %r0, %r1, %r2, %r3", op+parts+types+".sat %r1, %r2, %r3, %r4", op+parts+types+".add %r2, %r3, %r4, %r5", "vavrg"+parts+types+" %r3, %r4, %r5, %r6")
			}
		}
	}
	g := &randProg{rnd: rand.New(rand.NewSource(1))}
	for range 80 {
		video = append(video, g.video())
	}
	const policy = "createpolicy.fractional.L2::evict_first.b64 %wide, 1.0; "
	memory := []string{ // each lane has its own address, as the order of lanes is undefined
		"atom.global.add.noftz.f16 %h0, [%mem], %h1", "atom.add.noftz.bf16 %h2, [%mem+2], %h3", "red.shared.add.noftz.f16 [%sa+6], %h4", "atom.shared.add.noftz.f16x2 %r0, [%sa+8], %r1",
		"atom.global.add.noftz.bf16x2 %r2, [%mem+4], %r3", "atom.global.cas.b16 %h0, [%mem+10], %h1, %h2", policy + "ld.global.L2::cache_hint.v2.b64 {%d0, %d1}, [%mem], %wide",
		"atom.global.v2.f32.add {%r1, %r0}, [%mem], {%r0, %r1}", "red.relaxed.gpu.global.add.v4.f32 [%mem+16], {%r0, %r1, %r2, %r3}", "atom.global.v2.f16.add.noftz {%h0, %h1}, [%mem], {%h1, %h2}",
		"red.global.v4.bf16.max.noftz [%mem+8], {%h0, %h1, %h2, %h3}", "red.global.v2.bf16x2.min.noftz [%mem+8], {%r0, %r1}", "red.global.v8.f16.min.noftz [%mem], {%h0, %h1, %h2, %h3, %h4, %h5, %h0, %h1}",
		policy + "st.global.L2::cache_hint.b32 [%mem], %r0, %wide", policy + "atom.global.add.L2::cache_hint.u32 %r0, [%mem], %r1, %wide",
	}
	forms := map[string][]string{"memory": memory, "set": set, "cvt": packedConversions, "video": video}
	for _, name := range []string{"set", "cvt", "video", "memory"} { // a fault makes a GPU unusable, so memory is last
		for _, inst := range forms[name] {
			t.Run(name+"/"+strings.Fields(strings.TrimPrefix(inst, policy))[0], func(t *testing.T) { differOnce(t, inst+";\n") })
		}
	}
}

// TestWarpsGoOnAlone checks that lanes whose members have all arrived continue, also if
// other lanes at the same instruction must wait, here for lanes that wait for the
// first.
func TestWarpsGoOnAlone(t *testing.T) {
	r := newRig(t, ptxHead+`.entry k(.param .u64 a) { .reg .b64 %rd<3>; .reg .b32 %r<6>; .reg .pred %p<4>; .shared .align 4 .b32 flag;
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.shared.u32 [flag], 0; bar.sync 0;
setp.lt.u32 %p1, %r1, 48; @%p1 bra MEET;
SPIN: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN;
MEET: redux.sync.add.u32 %r3, %r1, -1;
setp.eq.u32 %p3, %r1, 5; @%p3 st.volatile.shared.u32 [flag], 1;
st.global.u32 [%rd1], %r3; ret; }`)
	a := r.buffer(make([]byte, 4*64))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, 0, a)
	r.expect(a, 64, func(i int) uint32 { return []uint32{31 * 16, 31*16 + 32*32}[i/32] })
}

// TestWarpGoesOnWithoutTheEnded checks that lanes that wait for one that ends continue,
// also while another warp spins until they do.
func TestWarpGoesOnWithoutTheEnded(t *testing.T) {
	r := newRig(t, ptxHead+`.entry k(.param .u64 a) { .reg .b64 %rd<3>; .reg .b32 %r<6>; .reg .pred %p<4>; .shared .align 4 .b32 flag[2];
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.shared.v2.u32 [flag], {0, 0}; bar.sync 0;
setp.ge.u32 %p1, %r1, 32; @%p1 bra SPIN; setp.lt.u32 %p1, %r1, 8; @%p1 bra FIRST;
vote.sync.ballot.b32 %r3, 1, -1; st.global.u32 [%rd1], %r3; st.volatile.shared.u32 [flag], 1; ret;
FIRST: ld.volatile.shared.u32 %r2, [flag+4]; setp.eq.u32 %p2, %r2, 0; @%p2 bra FIRST; ret;
SPIN: st.volatile.shared.u32 [flag+4], 1; ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra SPIN; ret; }`)
	a := r.buffer(make([]byte, 4*64))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, 0, a)
	r.expect(a, 64, func(i int) uint32 { return map[bool]uint32{true: 0xffffff00}[i >= 8 && i < 32] })
}

// TestSharedAddressesWrap checks that 32-bit addresses wrap around: compilers put a
// constant that belongs to an index into the offset, so that the register alone is
// below the memory.
func TestSharedAddressesWrap(t *testing.T) {
	r := newRig(t, ptxHead+`.entry k(.param .u64 a) { .reg .b64 %rd<4>; .reg .b32 %r<10>; .shared .align 8 .b8 t[256]; .local .align 8 .b8 l[8];
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;
mov.u32 %r2, t; shl.b32 %r3, %r1, 3; add.s32 %r2, %r2, %r3; add.s32 %r3, %r2, -128;
st.shared.u32 [%r3+128], %r1; ld.shared.u32 %r4, [%r2+0]; st.global.u32 [%rd1], %r4;
add.s32 %r5, %r2, 4096; st.shared.u32 [%r5+-4092], %r1; ld.shared.v2.u32 {%r6, %r7}, [%r3+128]; st.global.u32 [%rd1+4], %r7;
atom.shared.add.u32 %r8, [%r3+128], 100; mov.b64 %rd3, {%r3, %r1}; ld.shared.u32 %r8, [%rd3+128]; st.global.u32 [%rd1+8], %r8;
mov.u32 %r9, l; sub.u32 %r9, %r9, 64; st.local.u32 [%r9+64], %r1; ld.local.u32 %r9, [l]; st.global.u32 [%rd1+12], %r9; ret; }`)
	a := r.buffer(make([]byte, 16*32))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, a)
	r.expect(a, 4*32, func(i int) uint32 { return uint32(i/4) + []uint32{0, 0, 100, 0}[i%4] })
}

func differOnce(t *testing.T, body string) {
	t.Helper()
	differOnceOf(t, ptxHead, body)
}

// differOnceOf is differOnce for a program with another head.
func differOnceOf(t *testing.T, head, body string) {
	t.Helper()
	g := &randProg{rnd: rand.New(rand.NewSource(0)), head: head}
	differ(t, randEngines(t, exec.Interpreted, exec.Compiled), g.program(func() { g.out.WriteString(body) }), 0, 1, 2, 3)
}

// TestAddressSpaces checks that generic addresses determine their space.
func TestAddressSpaces(t *testing.T) {
	r := newRig(t, ptxHead+`.entry k(.param .u64 out) { .reg .b64 %o, %s, %l; .reg .b32 %r<9>; .reg .pred %p<9>;
.shared .align 4 .b8 sh[16]; .local .align 4 .b8 lo[16];
ld.param.u64 %o, [out]; mov.u64 %s, sh; cvta.shared.u64 %s, %s; mov.u64 %l, lo; cvta.local.u64 %l, %l;
st.u32 [%s+4], 7; st.u32 [%l+4], 9; ld.shared.u32 %r1, [sh+4]; ld.local.u32 %r2, [lo+4];
isspacep.shared %p1, %s; isspacep.local %p2, %l; isspacep.global %p3, %o; isspacep.global %p4, %s; isspacep.shared %p5, %l;
selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 1, 0, %p3; selp.u32 %r6, 1, 0, %p4; selp.u32 %r7, 1, 0, %p5;
cvta.to.shared.u64 %s, %s; ld.shared.u32 %r8, [%s+4];
st.global.v4.u32 [%o], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%o+16], {%r5, %r6, %r7, %r8}; ret; }`)
	out := r.buffer(make([]byte, 32))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out)
	got, err := r.read(out, 32)
	if want := raw([]uint32{7, 9, 1, 1, 1, 0, 0, 7}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("results = %v, error %v; want %v", got, err, want)
	}
}

func TestRegisterTypesAreChecked(t *testing.T) {
	for inst, ok := range map[string]bool{
		"add.u16 %h0, %h0, %r0;": false, "add.u16 %r0, %h0, %h0;": false, "add.f32 %r0, %r0, %u0;": false,
		"add.s32 %u0, %u0, %f0;": false, "mul.wide.u32 %r0, %r0, %r0;": false, "mul.wide.u16 %h0, %h0, %h0;": false,
		"setp.eq.s32 %r0, %r0, %r0;": false, "selp.b32 %r0, %r0, %r0, %r0;": false, "shl.b64 %d0, %d0, %d0;": false,
		"ld.global.u32 %f0, [%d0];": false, "ld.global.u64 %r0, [%d0];": false, "st.global.u32 [%d0], %h0;": false,
		"ld.global.f32 %g0, [%d0];": false, "atom.global.add.u32 %h0, [%d0], %r0;": false, "cvt.u32.u16 %h0, %h0;": false,
		"cvt.rn.f32.s32 %u0, %u0;": false, "popc.b64 %d0, %d0;": false, "mov.u32 %r0, %h0;": false,
		"add.u32 %r0, %u0, 1;": true, "and.b32 %f0, %f0, %r0;": true, "mov.b32 %f0, %u0;": true, "ld.global.u8 %d1, [%d0];": true,
		"ld.global.u16 %r0, [%d0];": true, "cvt.u16.u32 %r0, %u0;": true, "st.global.u8 [%d0], %u0;": true, "mad.wide.u32 %d0, %r0, %u0, %d0;": true,
	} {
		src := ptxHead + ".entry k() {\n.reg .b16 %h<2>; .reg .b32 %r<2>; .reg .u32 %u<2>; .reg .f32 %f<2>; .reg .f64 %g<2>; .reg .b64 %d<2>;\n" + inst + "\n}"
		log, err := refusal(t, src)
		if ok && err != nil {
			t.Errorf("%s: launch error %v, want none", inst, err)
		}
		if !ok && (!errors.Is(err, abi.ErrInvalidPTX) || !strings.Contains(log, "kernel k: line 6") || !strings.Contains(log, inst)) {
			t.Errorf("%s: load error %v, log %q; want %v and a log with the kernel, line 6 and the instruction", inst, err, log, abi.ErrInvalidPTX)
		}
	}
}

// TestMistypedModules checks that one wrong type, in a function that a kernel calls,
// refuses a module with its other kernels and frees its variables, and that a large
// module, whose functions are read when they are used, has its other kernels.
func TestMistypedModules(t *testing.T) {
	r := newRig(t, ptxHead)
	src := ptxHead + ".global .b8 room[100663296];\n.func f() { .reg .b64 %d<2>; add.s32 %d0, %d0, %d1; ret; }\n.entry bad() { call f; ret; }\n.entry good() { ret; }\n"
	for range 3 { // the device has room for the variable twice
		_, _, info, err := r.c.ModuleLoad([]byte(src), worker.ModuleOptions{})
		if !errors.Is(err, abi.ErrInvalidPTX) || !strings.Contains(info.ErrorLog, "kernel bad: line 5: register %d0 must agree") {
			t.Fatalf("load: error %v, log %q; want %v with the kernel, the line and the register", err, info.ErrorLog, abi.ErrInvalidPTX)
		}
	}
	_, funcs, info, err := r.c.ModuleLoad([]byte(src+strings.Repeat("// padding\n", 30000)), worker.ModuleOptions{Lazy: true})
	if err != nil {
		t.Fatalf("load of a large module: %v, log %q", err, info.ErrorLog)
	}
	for i, want := range []error{abi.ErrNoBinaryForGPU, nil} {
		if err := r.c.Launch(nil, funcs[i], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil); !errors.Is(err, want) {
			t.Errorf("launch of %s: error %v, want %v", info.Functions[i].Name, err, want)
		}
	}
}

func TestFaults(t *testing.T) {
	broken := errors.New("broken on purpose")
	fail := false
	check := func() error {
		if fail {
			return broken
		}
		return nil
	}
	d, err := device.New(device.Options{VRAM: 64 << 20, Faults: device.Faults{
		Alloc: func(uint64) error { return check() }, Copy: func(uint64) error { return check() }, Launch: func(string) error { return check() },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, c: c, funcs: map[string]worker.Function{}}
	_, funcs, _, err := c.ModuleLoad([]byte(ptxHead+".entry k() { ret; }"), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.funcs["k"] = funcs[0]
	a := r.buffer(make([]byte, 16))
	if _, err := r.read(a, 16); err != nil {
		t.Fatal(err)
	}
	fail = true
	if _, err := c.MemAlloc(16); !errors.Is(err, broken) {
		t.Errorf("MemAlloc: error %v, want %v", err, broken)
	}
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0)
	if _, err := r.read(a, 16); !errors.Is(err, broken) {
		t.Errorf("copy after the launch: error %v, want %v", err, broken)
	}
	fail = false
	if _, err := r.read(a, 16); !errors.Is(err, broken) {
		t.Errorf("copy after a failed launch: error %v, want %v as the context is poisoned", err, broken)
	}
}
