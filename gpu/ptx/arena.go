package ptx

import "slices"

// arena collects lists of unknown length for the parser, so that each is allocated
// once.
type arena struct {
	args  []Operand // of one instruction
	insts []Inst    // of one function
	free  []Operand // the remainder of the last piece
}

// operandPiece is how many operands of several instructions are allocated together.
const operandPiece = 64

// kept returns a copy of the operands of one instruction.
func (r *arena) kept(args []Operand) []Operand {
	r.args = args[:0]
	if len(args) == 0 {
		return nil
	}
	if len(r.free) < len(args) {
		r.free = make([]Operand, max(operandPiece, len(args)))
	}
	n := copy(r.free, args)
	list := r.free[:n:n]
	r.free = r.free[n:]
	return list
}

// body returns a copy of the instructions of one function.
func (r *arena) body(insts []Inst) []Inst {
	list := slices.Clone(insts)
	clear(insts)
	r.insts = insts[:0]
	return list
}
