package ir

import "slices"

// Live has the registers of a program that a lane may still read, at the beginning of
// each block. Registers that several functions of the program use, which pass arguments
// and results, are live everywhere. A caller's own registers are not included in the
// functions that it calls, which do not access them.
type Live struct {
	p    *Program
	size [3]int // registers by class
	in   []Set  // by block
	all  Set    // registers that are live everywhere
}

// Set is a set of registers.
type Set struct {
	bits []uint64
	base [3]int // the first bit of each class
}

// maxLiveBits limits the memory of a Live, in bits.
const maxLiveBits = 1 << 27

// FindLive computes the live registers of a program. It returns nil if the program is
// too large.
func FindLive(p *Program) *Live {
	l := &Live{p: p, size: [3]int{p.Regs32, p.Regs64, p.Preds}, in: make([]Set, len(p.Blocks))}
	if (l.size[0]+l.size[1]+l.size[2]+64)*len(p.Blocks) > maxLiveBits {
		return nil
	}
	l.all = l.common()
	for i := range l.in {
		l.in[i] = l.all.Clone()
	}
	for again := true; again; {
		again = false
		for i := len(p.Blocks) - 1; i >= 0; i-- {
			s := l.out(i)
			b := &p.Blocks[i]
			for j := len(b.Insts) - 1; j >= 0; j-- {
				s.Before(&b.Insts[j])
			}
			if b.Sync != nil {
				s.Before(&Inst{Op: b.Sync})
			}
			again = l.in[i].add(s) || again
		}
	}
	return l
}

// In returns the registers that are live at the beginning of a block. The caller must
// not change the set.
func (l *Live) In(block int) Set { return l.in[block] }

// At returns the registers that are live before an instruction of a block, or, with the
// number of instructions, before its end.
func (l *Live) At(block, inst int) Set {
	s := l.out(block)
	b := &l.p.Blocks[block]
	for j := len(b.Insts) - 1; j >= inst; j-- {
		s.Before(&b.Insts[j])
	}
	return s
}

// out returns the registers that are live before the end of a block.
func (l *Live) out(block int) Set {
	e := l.p.Blocks[block].End
	s := l.all.Clone()
	for _, n := range e.Next() {
		s.add(l.in[n])
	}
	if r := e.Source(); r != None {
		s.Add(r)
	}
	return s
}

// common returns the registers that more than one function uses. A function is a set of
// connected blocks.
func (l *Live) common() Set {
	of := l.functions()
	seen, common := map[Ref]int{}, l.empty()
	note := func(block int, refs ...Ref) {
		for _, r := range refs {
			if r.Class == ClassNone {
				continue
			}
			if f, ok := seen[r]; ok && f != of[block] {
				common.Add(r)
			}
			seen[r] = of[block]
		}
	}
	for i := range l.p.Blocks {
		b := &l.p.Blocks[i]
		if b.Sync != nil {
			results, sources := b.Sync.Registers()
			note(i, append(results, sources...)...)
		}
		for j := range b.Insts {
			results, sources := b.Insts[j].Op.Registers()
			note(i, append(results, sources...)...)
			if g := b.Insts[j].Guard; g != nil {
				note(i, g.Ref())
			}
		}
		note(i, b.End.Source())
	}
	for _, r := range l.p.Pointers() {
		common.Add(r)
	}
	return common
}

// functions numbers the blocks by function.
func (l *Live) functions() []int {
	of := make([]int, len(l.p.Blocks))
	for i := range of {
		of[i] = i
	}
	root := func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	for i := range l.p.Blocks {
		for _, n := range l.p.Blocks[i].End.Next() {
			of[root(i)] = root(n)
		}
	}
	for i := range of {
		of[i] = root(i)
	}
	return of
}

func (l *Live) empty() Set {
	n := l.size[0] + l.size[1] + l.size[2]
	return Set{bits: make([]uint64, (n+63)/64), base: [3]int{0, l.size[0], l.size[0] + l.size[1]}}
}

func (s Set) bit(r Ref) int { return s.base[r.Class] + r.Slot }

// Has reports whether a register is in the set.
func (s Set) Has(r Ref) bool { n := s.bit(r); return s.bits[n/64]>>(n%64)&1 != 0 }

// Add adds a register to the set.
func (s Set) Add(r Ref) { n := s.bit(r); s.bits[n/64] |= 1 << (n % 64) }

// Remove removes a register from the set.
func (s Set) Remove(r Ref) { n := s.bit(r); s.bits[n/64] &^= 1 << (n % 64) }

// Clone returns a copy of the set.
func (s Set) Clone() Set { return Set{slices.Clone(s.bits), s.base} }

// Before changes the set from the registers that are live after an instruction to those
// that are live before it.
func (s Set) Before(in *Inst) {
	results, sources := in.Op.Registers()
	if in.Guard == nil {
		for _, r := range results {
			s.Remove(r)
		}
	} else {
		s.Add(in.Guard.Ref())
	}
	for _, r := range sources {
		s.Add(r)
	}
}

// Refs returns the registers of the set.
func (s Set) Refs() (list []Ref) {
	for n := range len(s.bits) * 64 {
		if s.bits[n/64]>>(n%64)&1 == 0 {
			continue
		}
		c := ClassPred
		for c > 0 && n < s.base[c] {
			c--
		}
		list = append(list, Ref{c, n - s.base[c]})
	}
	return list
}

// add adds all registers of another set and reports whether there were new ones.
func (s Set) add(t Set) (some bool) {
	for i, w := range t.bits {
		some = some || w&^s.bits[i] != 0
		s.bits[i] |= w
	}
	return some
}
