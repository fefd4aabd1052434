package ir

// Looping reports for each block of a program whether it may be in a loop. The blocks
// of a loop are between its first block and the one that branches back; a function may
// be called from one.
func Looping(p *Program) []bool {
	in := make([]bool, len(p.Blocks))
	within := func(from, to int) {
		for i := from; i <= to; i++ {
			in[i] = true
		}
	}
	for i := range p.Blocks {
		switch end := p.Blocks[i].End; end.(type) {
		case Call, CallDynamic, CallAddress:
			within(0, len(in)-1)
			return in
		default:
			for _, n := range end.Next() {
				within(n, i)
			}
		}
	}
	return in
}
