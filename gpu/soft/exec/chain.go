package exec

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Instructions that a whole warp executes together, such as loads of fragments and
// products of matrices, often follow each other. They are executed warp by warp, because
// the registers of all warps of a block do not fit in the first-level cache. Warps do not
// depend on each other without an instruction at which they wait.

// maxChain is the number of instructions that are executed for a warp before the next
// warp. It limits the time until the next check of the machine.
const maxChain = 64

// chain finds the instructions that follow each other.
func (p *Program) chain() {
	linked := make([]bool, len(p.Blocks)) // an instruction is in one chain
	for i := range p.Blocks {
		o := p.Blocks[i].warp
		if o == nil || o.whole == nil || len(p.Blocks[i].steps) > 0 {
			continue
		}
		end, ok := p.Program.Blocks[i].End.(ir.Goto)
		if !ok || end.To <= i {
			continue
		}
		if next := p.Blocks[end.To].warp; next != nil && next.whole != nil && !linked[end.To] {
			o.next, o.nextAt = next, end.To
			linked[end.To] = true
		}
	}
	for i := range p.Blocks {
		if o := p.Blocks[i].warp; o != nil && o.next != nil && !linked[i] {
			o.keepMatrices()
		}
	}
}

// keptMatrix is a matrix that a product has converted to numbers.
type keptMatrix struct {
	form  *ops.MMA
	isB   bool
	regs  []ir.Ref
	at    int // the instruction, from the beginning of the chain
	valid bool
}

// keepMatrices finds the products of a chain whose A or B an earlier one has converted,
// of registers that were not written since.
func (o *warpOp) keepMatrices() {
	var kept [ops.KeptMatrices]keptMatrix
	used := 0
	find := func(form *ops.MMA, isB bool, regs []ir.Ref, at, other int) (room, back int) {
		for i, c := range kept {
			if c.valid && c.form == form && c.isB == isB && slices.Equal(c.regs, regs) {
				return i, at - c.at
			}
		}
		if room = used % len(kept); room == other {
			used++
			room = used % len(kept)
		}
		used++
		kept[room] = keptMatrix{form, isB, regs, at, true}
		return room, 0
	}
	for at, n := o, 0; at != nil; at, n = at.next, n+1 {
		if p, ok := at.do.(*ir.Product); ok && at.product != nil {
			at.keep.A, at.hasA = find(p.F, false, p.A, n, -1)
			at.keep.B, at.hasB = find(p.F, true, p.B, n, at.keep.A)
		}
		results, _ := at.do.Registers()
		for i := range kept {
			if slices.ContainsFunc(results, func(r ir.Ref) bool { return slices.Contains(kept[i].regs, r) }) {
				kept[i].valid = false
			}
		}
	}
}

// exchangeChain executes an instruction and those that follow it for each warp, and moves
// the group to the last one, or to the one that has failed.
func (o *warpOp) exchangeChain(m *machine, g *group) error {
	first, count := g.pc, uint64(0)
	for w, lanes := range g.act[:m.warps] {
		if lanes == 0 {
			continue
		}
		g.pc, count = first, 1
		for at := o; ; at = at.next {
			if at.product != nil {
				keep := at.keep
				keep.HasA, keep.HasB = at.hasA > 0 && uint64(at.hasA) < count, at.hasB > 0 && uint64(at.hasB) < count
				at.product.Multiply(&m.matrix.dense, m.registers(w), keep)
			} else if err := at.whole(m, w, lanes); err != nil {
				return err
			}
			if at.next == nil || count == maxChain {
				break
			}
			g.pc = at.nextAt
			count++
		}
	}
	m.clock += count - 1
	return nil
}
