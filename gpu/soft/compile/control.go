package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// terminator compiles the end of a block (PTX ISA, "Control Flow Instructions").
func (c *compiler) terminator(n *node, b *exec.Block) error {
	num := c.fr.number
	switch n.term {
	case termJump:
		b.End = exec.Goto(num[n.succ[0]])
	case termBranch:
		b.End = exec.Branch(exec.PredOf(c.fr.regs[n.inst.Guard], n.inst.GuardNot), num[n.succ[0]], num[n.succ[1]])
	case termTable:
		return c.branchTable(n, b)
	case termCall:
		return c.call(n, b)
	case termReturned:
		return c.returned(n, b)
	case termRet:
		return c.ret(b)
	case termExit:
		b.End = exec.Exit()
	}
	return nil
}

// branchTable is brx.idx. An index past the table has no defined effect in PTX.
func (c *compiler) branchTable(n *node, b *exec.Block) error {
	idx, err := c.source(&n.inst.Args[0], exec.Class32, ptx.U32)
	if err != nil {
		return err
	}
	var to []int
	for _, s := range n.succ {
		to = append(to, c.fr.number[s])
	}
	if len(to) == 0 {
		return n.inst.Errorf("empty branch table")
	}
	b.End = exec.Table(idx, to)
	return nil
}
