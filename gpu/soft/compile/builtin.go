package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/libdevice"
)

// builtinOf returns the function of the device that an instruction calls, or nil.
func builtinOf(in *ptx.Inst) *ptx.Func {
	if in.Op != "call" {
		return nil
	}
	for i := range in.Args {
		if a := &in.Args[i]; a.Kind == ptx.KindFunc && provided(a.Func) {
			return a.Func
		}
	}
	return nil
}

// provided reports whether the device provides a function. Functions of libdevice
// replace weak definitions, as any other definition would, so that a program with one
// also runs on a device without the function.
func provided(f *ptx.Func) bool {
	if f.Extern || f.Link == ptx.Weak {
		if _, ok := libdevice.Find(f.Name); ok {
			return true
		}
	}
	return f.Builtin() && systemCalls[f.Name].op != nil
}

func builtinCall(in *ptx.Inst) bool { return builtinOf(in) != nil }

// callBuiltin compiles a call of a function of libdevice, or of a system call (CUDA C++
// Programming Guide, "Dynamic Global Memory Allocation and Operations", "Formatted
// Output", "Assertion", "Conditional Graph Nodes"; vprintf's and __assertfail's
// parameters are those of "PTX Writer's Guide to Interoperability", "System Calls").
func (c *compiler) callBuiltin(in *ptx.Inst) ([]ir.Op, error) {
	s, err := callParts(in)
	if err != nil {
		return nil, err
	}
	if f, ok := libdevice.Find(s.fn.Name); ok {
		return c.callMath(f, &s)
	}
	b := systemCalls[s.fn.Name]
	args, err := c.words(s.args, b.args)
	if err != nil {
		return nil, err
	}
	returns, err := c.words(s.rets, b.returns)
	if err != nil {
		return nil, err
	}
	return []ir.Op{b.op(returns, args)}, nil
}

// systemCall is a function that the device provides: the sizes in bytes of its
// parameters and results, and its operation.
type systemCall struct {
	args, returns []uint64
	op            func(returns, args []ir.Word) ir.Op
}

var systemCalls = map[string]systemCall{
	"malloc": {[]uint64{8}, []uint64{8}, func(r, a []ir.Word) ir.Op { return &ir.Malloc{Result: r[0], Size: a[0]} }},
	"free":   {[]uint64{8}, nil, func(_, a []ir.Word) ir.Op { return &ir.Free{Address: a[0]} }},
	"vprintf": {[]uint64{8, 8}, []uint64{4}, func(r, a []ir.Word) ir.Op {
		return &ir.Print{Result: r[0], Format: a[0], Args: a[1]}
	}},
	"__assertfail": {[]uint64{8, 8, 4, 8, 8}, nil, func(_, a []ir.Word) ir.Op {
		return &ir.Assertion{Message: a[0], File: a[1], Line: a[2], Function: a[3]}
	}},
	ptx.LaunchBuffer: {[]uint64{8}, []uint64{8}, func(r, a []ir.Word) ir.Op {
		return &ir.LaunchBuffer{Result: r[0], Kernel: a[0]}
	}},
	ptx.LaunchKernel: {[]uint64{8, 8}, []uint64{4}, func(r, a []ir.Word) ir.Op {
		return &ir.LaunchKernel{Result: r[0], Buffer: a[0], Stream: a[1]}
	}},
	"cudaGraphSetConditional": {[]uint64{8, 4}, nil, func(_, a []ir.Word) ir.Op {
		return &ir.SetCondition{Handle: a[0], Value: a[1]}
	}},
}

// words returns the operands of a list as words of the given sizes in bytes.
func (c *compiler) words(list []ptx.Operand, sizes []uint64) ([]ir.Word, error) {
	if len(list) != len(sizes) {
		return nil, broken(c.in, len(list), "a call of a function of the device must have %d arguments or results there", len(sizes))
	}
	var words []ir.Word
	for i := range list {
		w, ok := c.word(&list[i], sizes[i])
		if !ok {
			return nil, broken(c.in, kindOf(&list[i]), "argument or result %d of a function of the device must be a .param variable or register of %d bytes", i+1, sizes[i])
		}
		words = append(words, w)
	}
	return words, nil
}

func (c *compiler) word(a *ptx.Operand, size uint64) (ir.Word, bool) {
	cl := ir.Class64
	if size == 4 {
		cl = ir.Class32
	}
	switch {
	case a.Kind == ptx.KindVar && a.Var.Size == size:
		return c.fr.word(a.Var)
	case a.Kind == ptx.KindReg && c.fr.regs[a.Reg].Class == cl:
		return ir.Word{Reg: c.fr.regs[a.Reg]}, true
	}
	return ir.Word{}, false
}
