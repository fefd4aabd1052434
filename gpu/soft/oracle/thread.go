package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

type state uint8

const (
	running state = iota
	waiting       // at a barrier or at an instruction of a warp
	ended
)

// thread is one thread with its call stack.
type thread struct {
	b      *block
	index  uint32
	tid    [3]uint32
	frames []*frame
	local  []byte
	state  state
	carry  uint64 // the condition code register CC.CF
	stack  uint64 // the stack pointer of alloca, or 0 before its first use
}

type frame struct {
	f    *ptx.Func
	regs []uint64
	addr map[*ptx.Var]uint64 // addresses of .local and .param variables in local memory
	pc   int
	// stack is the stack pointer when the function was entered: ret frees what it has
	// allocated.
	stack uint64
}

func (t *thread) top() *frame { return t.frames[len(t.frames)-1] }

// inst returns the instruction at pc, or an implicit ret past the end of the body.
func (t *thread) inst() *ptx.Inst {
	if f := t.top(); f.pc < len(f.f.Body) {
		return &f.f.Body[f.pc]
	}
	return &ptx.Inst{Op: "ret", Guard: -1}
}

func (t *thread) push(f *ptx.Func) *frame {
	fr := &frame{f: f, regs: make([]uint64, len(f.Regs)), addr: map[*ptx.Var]uint64{}}
	vars := append([]*ptx.Var{}, f.Vars...)
	if !f.Entry {
		vars = append(append(vars, f.Params...), f.Returns...)
	}
	for _, v := range vars {
		if v.Space == ptx.Local || v.Space == ptx.Param {
			at := (uint64(len(t.local)) + 15) &^ 15
			fr.addr[v] = at
			t.local = append(t.local, make([]byte, at+v.Size-uint64(len(t.local)))...)
		}
	}
	fr.stack = t.stack
	t.frames = append(t.frames, fr)
	return fr
}

// step executes one instruction, or puts the thread into state waiting.
func (t *thread) step() error {
	f, in := t.top(), t.inst()
	if in.Guard >= 0 && (f.regs[in.Guard] != 0) == in.GuardNot {
		f.pc++
		return nil
	}
	switch in.Op {
	case "bra":
		f.pc = in.Args[0].Target
		return nil
	case "brx":
		i := min(t.val(&in.Args[0], ptx.U32), uint64(len(in.Args[1].Targets)-1))
		f.pc = in.Args[1].Targets[i]
		return nil
	case "call":
		return t.call(in)
	case "ret":
		return t.ret()
	case "exit":
		t.state = ended
		return nil
	case "trap", "brkpt":
		return errors.New("trap")
	case "bar", "barrier", "shfl", "vote", "match", "redux", "elect",
		"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix", "wgmma":
		t.state = waiting
		return nil
	}
	f.pc++
	return t.plain(in)
}

func callParts(in *ptx.Inst) (f *ptx.Operand, rets, args []ptx.Operand) {
	rest := in.Args
	if rest[0].Kind == ptx.KindList {
		rets, rest = rest[0].List, rest[1:]
	}
	f, rest = &rest[0], rest[1:]
	if len(rest) > 0 && rest[0].Kind == ptx.KindList {
		args = rest[0].List
	}
	return f, rets, args
}

// functionAt returns the function whose address, as addressOf assigned it, is v.
func (b *block) functionAt(v uint64) (*ptx.Func, error) {
	if v < functions || v-functions >= uint64(len(b.taken)) {
		return nil, fmt.Errorf("call of address %#x, want that of a function", v)
	}
	return b.taken[v-functions], nil
}

// addressOf returns the address of a function, and assigns one at the first call.
func (b *block) addressOf(f *ptx.Func) uint64 {
	i := slices.Index(b.taken, f)
	if i < 0 {
		i, b.taken = len(b.taken), append(b.taken, f)
	}
	return functions + uint64(i)
}

func (t *thread) call(in *ptx.Inst) error {
	caller := t.top()
	to, _, args := callParts(in)
	f := to.Func
	if to.Kind == ptx.KindReg {
		var err error
		if f, err = t.b.functionAt(t.val(to, ptx.U64)); err != nil {
			return err
		}
	}
	fr := t.push(f)
	for i, p := range f.Params {
		if p.Space == ptx.Register {
			t.frames = t.frames[:len(t.frames)-1]
			v := t.val(&args[i], p.Type)
			t.frames = append(t.frames, fr)
			fr.regs[p.Reg] = v
			continue
		}
		copy(t.local[fr.addr[p]:][:p.Size], t.local[caller.addr[args[i].Var]:])
	}
	return nil
}

func (t *thread) ret() error {
	done := t.top()
	if len(t.frames) == 1 {
		t.state = ended
		return nil
	}
	t.frames = t.frames[:len(t.frames)-1]
	if done.stack != 0 {
		t.stack = done.stack
	}
	caller := t.top()
	_, rets, _ := callParts(t.inst())
	for i, p := range done.f.Returns {
		if p.Space == ptx.Register {
			t.set(&rets[i], done.regs[p.Reg])
			continue
		}
		copy(t.local[caller.addr[rets[i].Var]:][:p.Size], t.local[done.addr[p]:])
	}
	caller.pc++
	return nil
}

func truncate(v uint64, bytes uint32) uint64 {
	if bytes >= 8 {
		return v
	}
	return v & (1<<(8*bytes) - 1)
}

// val returns the bits of an operand. ty is the type that a constant is read as.
func (t *thread) val(o *ptx.Operand, ty ptx.Type) uint64 {
	switch o.Kind {
	case ptx.KindReg:
		v := t.top().regs[o.Reg]
		if o.Not {
			v ^= 1
		}
		return v
	case ptx.KindF64:
		if ty == ptx.F32 {
			return uint64(math.Float32bits(float32(math.Float64frombits(o.Bits))))
		}
		return o.Bits
	case ptx.KindVar:
		return t.b.address(t, o.Var) + uint64(o.Off)
	case ptx.KindSpecial:
		return t.special(o.Name)
	case ptx.KindFunc:
		return t.b.addressOf(o.Func)
	}
	if ty == ptx.Pred {
		if o.Bits != 0 {
			return 1
		}
		return 0
	}
	return truncate(o.Bits, ty.Size())
}

func (t *thread) set(o *ptx.Operand, v uint64) {
	if o.Kind == ptx.KindReg {
		f := t.top()
		ty := f.f.Regs[o.Reg].Type
		if ty == ptx.Pred {
			v &= 1
		}
		f.regs[o.Reg] = truncate(v, ty.Size())
	}
}

// address returns the address of a variable in its own state space.
func (b *block) address(t *thread, v *ptx.Var) uint64 {
	if a, ok := t.top().addr[v]; ok {
		return a
	}
	switch {
	case v.Space == ptx.Shared && v.Extern:
		return (b.static + 15) / 16 * 16
	case v.Space == ptx.Shared:
		return b.place[v]
	case v.Space == ptx.Param:
		return uint64(v.Offset)
	}
	return b.l.Address(v)
}

func (t *thread) special(name string) uint64 {
	l := t.b.l
	if base, dim, ok := strings.Cut(name, "."); ok {
		d := strings.Index("xyz", dim)
		switch base {
		case "%tid":
			return uint64(t.tid[d])
		case "%ntid":
			return uint64(l.Block[d])
		case "%ctaid":
			return uint64(t.b.at[d])
		case "%nctaid":
			return uint64(l.Grid[d])
		}
	}
	lane := t.index % warpSize
	switch name {
	case "WARP_SZ":
		return warpSize
	case "%laneid":
		return uint64(lane)
	case "%warpid":
		return uint64(t.index / warpSize)
	case "%lanemask_eq":
		return 1 << lane
	case "%lanemask_lt":
		return 1<<lane - 1
	case "%lanemask_le":
		return 2<<lane - 1
	case "%lanemask_gt":
		return truncate(^uint64(2<<lane-1), 4)
	case "%lanemask_ge":
		return truncate(^uint64(1<<lane-1), 4)
	}
	panic("special register " + name)
}

// plain executes an instruction that is followed by the next one in the body.
func (t *thread) plain(in *ptx.Inst) error {
	switch in.Op {
	case "ld", "ldu":
		return t.load(in)
	case "cp":
		return t.copyAsync(in)
	case "mbarrier":
		return t.mbarrier(in)
	case "st":
		return t.store(in)
	case "atom", "red":
		return t.atom(in)
	case "tex", "tld4":
		return t.tex(in)
	case "suld", "sust":
		return t.surface(in)
	case "membar", "fence", "prefetch", "nanosleep", "setmaxnreg", "createpolicy":
		return nil
	case "cvta":
		v := t.val(&in.Args[1], ptx.U64)
		base := map[bool]uint64{in.Has("shared"): sharedWindow, in.Has("local"): localWindow}[true]
		if in.Has("to") {
			base = -base
		}
		t.set(&in.Args[0], v+base)
		return nil
	case "mov":
		return t.mov(in)
	case "alloca", "stacksave", "stackrestore":
		return t.allocate(in)
	}
	types := in.OperandTypes()
	if types == nil {
		return missing("opcode %s", in.Op)
	}
	if len(in.Args) > len(types)+1 {
		return missing("%s with %d operands", in.Op, len(in.Args))
	}
	v := make([]uint64, len(in.Args)-1)
	for i := range v {
		v[i] = t.val(&in.Args[i+1], types[min(i+1, len(types)-1)])
	}
	if in.Op == "setp" {
		p, q := setp(in, v)
		if d := in.Args[0]; d.Kind == ptx.KindPair {
			t.set(&d.List[0], p)
			t.set(&d.List[1], q)
		} else {
			t.set(&d, p)
		}
		return nil
	}
	r, err := eval(in, types, v, &t.carry)
	if err != nil {
		return err
	}
	d := &in.Args[0]
	if d.Kind == ptx.KindPair { // of lop3
		t.set(&d.List[1], boolean(combine(in, r != 0, v[4])))
		d = &d.List[0]
	}
	t.set(d, r)
	return nil
}

func (t *thread) mov(in *ptx.Inst) error {
	d, a := &in.Args[0], &in.Args[1]
	ty := in.OperandTypes()[0]
	var v uint64
	if a.Kind == ptx.KindVec {
		each := ty.Size() / uint32(len(a.List))
		for i := range a.List {
			v |= truncate(t.val(&a.List[i], ptx.U64), each) << (8 * each * uint32(i))
		}
	} else {
		v = t.val(a, ty)
	}
	if d.Kind != ptx.KindVec {
		t.set(d, v)
		return nil
	}
	each := ty.Size() / uint32(len(d.List))
	for i := range d.List {
		t.set(&d.List[i], truncate(v>>(8*each*uint32(i)), each))
	}
	return nil
}
