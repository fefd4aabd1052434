package ir

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// asm builds programs for tests. Registers are named as in a program's text.
type asm struct {
	t testing.TB
	p *Program
}

func newAsm(t testing.TB) *asm {
	return &asm{t, &Program{Name: "test", Const32: map[int]uint32{}, Const64: map[int]uint64{}, Specials: map[string]int{}}}
}

// r and rd return registers of 32 and 64 bits, pred a predicate.
func (a *asm) r(n int) Ref {
	a.p.Regs32 = max(a.p.Regs32, n+1)
	return Ref{Class32, n}
}

func (a *asm) rd(n int) Ref {
	a.p.Regs64 = max(a.p.Regs64, n+1)
	return Ref{Class64, n}
}

func (a *asm) pred(n int) Ref {
	a.p.Preds = max(a.p.Preds, n+1)
	return Ref{ClassPred, n}
}

// arith returns an instruction with an operation of the table.
func (a *asm) arith(d Ref, op string, s ...Ref) Inst {
	f, ok := ops.Find(op)
	if !ok {
		a.t.Fatalf("table has no operation %s", op)
	}
	return Inst{Op: &Arith{F: f, D: d, S: s}}
}

func (a *asm) block(end End, insts ...Inst) {
	a.p.Blocks = append(a.p.Blocks, Block{Insts: insts, End: end})
}

// count builds the loop that most kernels have: an index from thread and block, a
// bound, a pointer that increases by a constant.
//
//	b0: r4 = ctaid * ntid + tid; rd1 = out + r4*4; r5 = 0
//	b1: p0 = r5 < n; branch b2 else b3
//	b2: r6 = load [rd1]; r7 = r6 + r4; rd1 += 64; r5 += 1; goto b1
//	b3: store [rd1] = r7; return
func count(t testing.TB) *asm {
	a := newAsm(t)
	a.p.Specials = map[string]int{"%tid.x": 1, "%ctaid.x": 2, "%ntid.x": 3}
	a.p.Const32 = map[int]uint32{10: 0, 11: 1, 12: 4}
	a.p.Const64 = map[int]uint64{10: 64, 11: 0}
	a.r(12)
	a.rd(11)
	a.block(Goto{1},
		Inst{Op: &Load{Access: Access{Space: Param, Base: a.rd(11), Size: 8, N: 1, Mask: ^uint64(0)}, D: []Ref{a.rd(0)}, Fixed: true}},
		Inst{Op: &Load{Access: Access{Space: Param, Base: a.rd(11), Off: 8, Size: 4, N: 1, Mask: ^uint64(0)}, D: []Ref{a.r(8)}, Fixed: true}},
		a.arith(a.r(4), "mad.lo.s32", a.r(2), a.r(3), a.r(1)),
		a.arith(a.rd(2), "mul.wide.u32", a.r(4), a.r(12)),
		a.arith(a.rd(1), "add.s64", a.rd(0), a.rd(2)),
		a.arith(a.r(5), "mov.b32", a.r(10)))
	a.block(Branch{P: PredOf(a.pred(0), false), To: 2, Else: 3}, a.arith(a.pred(0), "setp.lt.u32", a.r(5), a.r(8)))
	a.block(Goto{1},
		Inst{Op: &Load{Access: Access{Space: Global, Base: a.rd(1), Size: 4, N: 1, Mask: ^uint64(0)}, D: []Ref{a.r(6)}}},
		a.arith(a.r(7), "add.s32", a.r(6), a.r(4)),
		a.arith(a.rd(1), "add.s64", a.rd(1), a.rd(10)),
		a.arith(a.r(5), "add.s32", a.r(5), a.r(11)))
	a.block(Return{}, Inst{Op: &Store{Access: Access{Space: Global, Base: a.rd(1), Size: 4, N: 1}, S: []Ref{a.r(7)}}})
	return a
}

func TestLive(t *testing.T) {
	a := count(t)
	l := FindLive(a.p)
	for _, c := range []struct {
		block, inst int
		want        []Ref
	}{
		{1, 0, []Ref{a.r(4), a.r(5), a.r(7), a.r(8), a.r(11), a.rd(1), a.rd(10)}},
		{2, 1, []Ref{a.r(4), a.r(5), a.r(6), a.r(8), a.r(11), a.rd(1), a.rd(10)}},
		{2, 2, []Ref{a.r(4), a.r(5), a.r(7), a.r(8), a.r(11), a.rd(1), a.rd(10)}},
		{3, 0, []Ref{a.r(7), a.rd(1)}},
		{3, 1, nil},
	} {
		if got := l.At(c.block, c.inst).Refs(); !slices.Equal(got, c.want) {
			t.Errorf("live before instruction %d of block %d = %v, want %v", c.inst, c.block, got, c.want)
		}
		if c.inst == 0 && !slices.Equal(l.In(c.block).Refs(), c.want) {
			t.Errorf("live at block %d = %v, want %v", c.block, l.In(c.block).Refs(), c.want)
		}
	}
}

// TestLiveAcrossFunctions checks that registers that two functions use are live
// everywhere.
func TestLiveAcrossFunctions(t *testing.T) {
	a := newAsm(t)
	a.p.Const32 = map[int]uint32{3: 7}
	a.r(3)
	a.block(Call{To: 2, Back: 1}, Inst{Op: &CopyWord{To: Word{Reg: a.r(0)}, From: Word{Reg: a.r(3)}}})
	a.block(Return{}, Inst{Op: &CopyWord{To: Word{Reg: a.r(2)}, From: Word{Reg: a.r(1)}}})
	a.block(Return{}, a.arith(a.r(1), "add.u32", a.r(0), a.r(0)))
	l := FindLive(a.p)
	if got, want := l.At(2, 1).Refs(), []Ref{a.r(0), a.r(1)}; !slices.Equal(got, want) {
		t.Errorf("live at the end of a function = %v, want %v", got, want)
	}
	if got, want := l.At(1, 1).Refs(), []Ref{a.r(0), a.r(1)}; !slices.Equal(got, want) {
		t.Errorf("live at the end of the kernel = %v, want %v", got, want)
	}
}
