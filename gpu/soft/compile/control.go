package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// terminator compiles the end of a block (PTX ISA, "Control Flow Instructions").
func (c *compiler) terminator(n *node, b *ir.Block) error {
	num := c.fr.number
	switch n.term {
	case termJump:
		b.End = ir.Goto{To: num[n.succ[0]]}
	case termBranch:
		b.End = ir.Branch{P: ir.PredOf(c.fr.regs[n.inst.Guard], n.inst.GuardNot), To: num[n.succ[0]], Else: num[n.succ[1]]}
	case termTable:
		return c.branchTable(n, b)
	case termCall:
		return c.call(n, b)
	case termReturned:
		return c.returned(n, b)
	case termRet:
		return c.ret(b)
	case termExit:
		b.End = ir.Exit{}
	}
	return nil
}

// branchTable compiles brx.idx. The effect of an index beyond the table is undefined in
// PTX.
func (c *compiler) branchTable(n *node, b *ir.Block) error {
	idx, err := c.source(&n.inst.Args[0], ir.Class32, ptx.U32)
	if err != nil {
		return err
	}
	var to []int
	for _, s := range n.succ {
		to = append(to, c.fr.number[s])
	}
	if len(to) == 0 {
		return broken(n.inst, 0, "the .branchtargets table of brx.idx must have at least 1 label")
	}
	b.End = ir.Table{Index: idx, To: to}
	return nil
}
