package ptx

import "strings"

// body parses a function body from { to }.
func (p *parser) body(s *funcState) error {
	if err := p.expect("{"); err != nil {
		return err
	}
	for base := s.depth; ; {
		switch {
		case p.tok.kind == tokEOF:
			return p.errorf("function %s has no end: expected \"}\"", s.f.Name)
		case p.is("{"):
			if s.depth >= MaxScopes {
				return p.errorf("function %s has more than %d scopes in each other", s.f.Name, MaxScopes)
			}
			if err := p.charge(costScope); err != nil {
				return err
			}
			s.push()
			if err := p.advance(); err != nil {
				return err
			}
		case p.is("}"):
			if err := p.advance(); err != nil {
				return err
			}
			if s.depth == base {
				return nil
			}
			s.pop()
		default:
			if err := p.statement(s); err != nil {
				return err
			}
		}
	}
}

// skipBody skips a function body from { to }.
func (p *parser) skipBody(s *funcState) error {
	if !p.is("{") {
		return p.expect("{")
	}
	start := p.tok.pos
	if ok, err := p.skipBraces(); err != nil {
		return err
	} else if !ok {
		return &Error{Line: p.lex.line, Msg: "function " + s.f.Name + " has no end"}
	}
	s.f.whole = declares(p.lex.src[start:p.lex.pos])
	return p.advance()
}

// skipBraces skips everything from the { that is next up to and including its },
// and reports whether there is a }.
func (p *parser) skipBraces() (bool, error) {
	for depth := 1; depth > 0; {
		switch c, err := p.lex.skipToBrace(); {
		case err != nil || c == 0:
			return false, err
		case c == '{':
			depth++
		default:
			depth--
		}
	}
	return true, nil
}

func (p *parser) statement(s *funcState) error {
	start := p.tok
	if ok, err := p.accept(";"); ok {
		return err
	}
	if p.is("@") {
		return p.instruction(s, start)
	}
	w, err := p.word()
	if err != nil {
		return err
	}
	if p.is(":") {
		return p.label(s, w)
	}
	switch w {
	case ".reg":
		return p.registers(s)
	case ".loc":
		return p.loc()
	case ".file":
		return p.file()
	case ".pragma":
		return p.skipTo(";")
	}
	if strings.HasPrefix(w, ".") {
		return p.variables(w, false, func(v *Var) error {
			if len(s.f.Vars) >= MaxVariables {
				return p.errorf("function %s has more than %d variables", s.f.Name, MaxVariables)
			}
			s.f.Vars = append(s.f.Vars, v)
			s.scopes[s.cur].vars[v.Name] = v
			return nil
		})
	}
	return p.operation(s, start, Inst{Guard: -1}, w)
}

func (p *parser) label(s *funcState, name string) error {
	labels := s.scopes[s.cur].labels
	if _, twice := labels[name]; twice {
		return p.errorf("label %s is defined twice in a scope", name)
	}
	l := label{at: len(s.f.Body)}
	if err := p.charge(costLabel); err != nil {
		return err
	}
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.kind == tokWord {
		switch p.tok.text {
		case ".branchtargets":
			if err := p.advance(); err != nil {
				return err
			}
			for {
				w, err := p.word()
				if err != nil {
					return err
				}
				if err := p.charge(costOperand); err != nil {
					return err
				}
				l.targets = append(l.targets, Operand{Kind: KindLabel, Name: w, Target: s.cur})
				if len(l.targets) > MaxOperands {
					return p.errorf("branch table %s has more than %d labels", name, MaxOperands)
				}
				if ok, err := p.accept(","); err != nil {
					return err
				} else if !ok {
					break
				}
			}
			if err := p.expect(";"); err != nil {
				return err
			}
		case ".callprototype", ".calltargets": // the arguments of a call contain the same information
			l.proto = true
			if err := p.skipTo(";"); err != nil {
				return err
			}
		}
	}
	labels[name] = l
	return nil
}

func (p *parser) instruction(s *funcState, start token) error {
	in := Inst{Guard: -1}
	if err := p.expect("@"); err != nil {
		return err
	}
	not, err := p.accept("!")
	if err != nil {
		return err
	}
	name, err := p.word()
	if err != nil {
		return err
	}
	r, ok := s.reg(name)
	if !ok || s.f.Regs[r].Type != Pred {
		return p.errorf("guard %s is not a register of type .pred", name)
	}
	in.Guard, in.GuardNot = r, not
	w, err := p.word()
	if err != nil {
		return err
	}
	return p.operation(s, start, in, w)
}

// operation parses an instruction after its guard (PTX ISA, "Instruction
// Statements").
func (p *parser) operation(s *funcState, start token, in Inst, opcode string) (err error) {
	if p.insts++; p.insts > MaxInstructions {
		return p.errorf("the module has more than %d instructions", MaxInstructions)
	}
	if err := p.charge(costInst + uint64(len(opcode))); err != nil {
		return err
	}
	parts := p.budget.split(opcode)
	in.Op, in.Mods, in.Line, in.Source = parts[0], parts[1:], start.line, p.source
	typeLast(in.Mods)
	args := p.arena.args
	for !p.is(";") {
		var o Operand
		if o, err = p.operand(s, 0); err != nil {
			break
		}
		if args = append(args, o); len(args) > MaxOperands {
			err = p.errorf("the instruction has more than %d operands", MaxOperands)
			break
		}
		if o.Negated && in.Op != "vmad" {
			err = p.errorf("a register must not be negated by operands of %s, only by those of vmad", in.Op)
			break
		}
		var ok bool
		if ok, err = p.accept(","); !ok {
			break
		}
	}
	in.Text = excerpt(p.lex.src[start.pos:p.lex.pos])
	if err == nil {
		err = p.expect(";")
	}
	if err != nil {
		if e, ok := err.(*Error); ok && e.Text == "" { //nolint:errorlint // our own, never wrapped
			e.Text, e.Line = in.Text, in.Line
		}
		return err
	}
	in.Args = p.arena.kept(args)
	s.f.Body = append(s.f.Body, in)
	return nil
}

// typeLast puts .ftz before the type, where the PTX ISA has it. ptxas accepts it
// after the type too, and cuRAND's headers contain lg2.approx.f32.ftz.
func typeLast(mods []string) {
	if n := len(mods); n > 1 && mods[n-1] == "ftz" {
		if _, ok := TypeByName(mods[n-2]); ok {
			mods[n-2], mods[n-1] = mods[n-1], mods[n-2]
		}
	}
}

// excerpt shortens source to one line for an error message.
func excerpt(src string) string {
	if i := strings.IndexByte(src, ';'); i >= 0 {
		src = src[:i+1]
	}
	src = src[:min(len(src), 400)]
	text := make([]byte, 0, 168)
	for i := 0; i < len(src) && len(text) <= 160; i++ {
		switch c := src[i]; {
		case c != ' ' && (c < '\t' || c > '\r'):
			text = append(text, c)
		case len(text) > 0 && text[len(text)-1] != ' ':
			text = append(text, ' ')
		}
	}
	if len(text) > 160 {
		text = append(text[:160], " …"...)
	}
	return strings.TrimSuffix(string(text), " ")
}

func (p *parser) operand(s *funcState, depth int) (Operand, error) {
	if depth > 4 {
		return Operand{}, p.errorf("the operand has more than 4 lists in each other")
	}
	if err := p.charge(costOperand); err != nil {
		return Operand{}, err
	}
	o, err := p.primary(s, depth)
	if err != nil {
		return o, err
	}
	if p.is("|") {
		if err := p.advance(); err != nil {
			return o, err
		}
		b, err := p.primary(s, depth)
		return Operand{Kind: KindPair, List: []Operand{o, b}}, err
	}
	return o, nil
}

func (p *parser) primary(s *funcState, depth int) (Operand, error) {
	switch {
	case p.is("{"):
		return p.list(s, KindVec, "}", depth)
	case p.is("("):
		return p.list(s, KindList, ")", depth)
	case p.is("["):
		return p.memory(s, depth)
	case p.is("!"):
		if err := p.advance(); err != nil {
			return Operand{}, err
		}
		o, err := p.primary(s, depth+1)
		o.Not = !o.Not
		return o, err
	case p.is("-") && depth == 0:
		return p.negated(s)
	case p.tok.kind == tokNumber || p.is("-") || p.is("+"):
		return p.constant()
	}
	w, err := p.word()
	if err != nil {
		return Operand{}, err
	}
	o := p.name(s, w)
	if p.is("+") || p.is("-") {
		c, err := p.constant()
		if err != nil {
			return o, err
		}
		if o.Kind != KindVar || c.Kind != KindInt {
			return o, p.errorf("offset of %s, want that of a variable in bytes", w)
		}
		o.Off = int64(c.Bits)
	}
	return o, nil
}

// negated parses a minus with what it negates: a constant, or a register.
func (p *parser) negated(s *funcState) (Operand, error) {
	if err := p.advance(); err != nil {
		return Operand{}, err
	}
	if p.tok.kind != tokWord {
		o, err := p.constant()
		return negate(o), err
	}
	w, err := p.word()
	if err != nil {
		return Operand{}, err
	}
	o := p.name(s, w)
	if o.Kind != KindReg {
		return o, p.errorf("-%s must be the negation of a constant or a register", w)
	}
	o.Negated = true
	return o, nil
}

// name returns the operand for a word. An unknown word may be a label further
// down, which resolve determines.
func (p *parser) name(s *funcState, w string) Operand {
	if w == "_" {
		return Operand{Kind: KindSink}
	}
	if r, ok := s.reg(w); ok {
		return Operand{Kind: KindReg, Reg: r}
	}
	if o, ok := s.vector(w); ok {
		return o
	}
	if v := s.local(w); v != nil {
		return Operand{Kind: KindVar, Var: v}
	}
	if o, ok := s.parts(w); ok {
		return o
	}
	if strings.HasPrefix(w, "%") || w == "WARP_SZ" {
		return Operand{Kind: KindSpecial, Name: strings.Clone(w)}
	}
	if v := p.vars[w]; v != nil {
		return Operand{Kind: KindVar, Var: v}
	}
	if f := p.funcs[w]; f != nil {
		return Operand{Kind: KindFunc, Func: f, Name: w}
	}
	return Operand{Kind: KindLabel, Name: w, Target: s.cur}
}

func (p *parser) list(s *funcState, kind Kind, end string, depth int) (Operand, error) {
	o := Operand{Kind: kind}
	if err := p.advance(); err != nil {
		return o, err
	}
	for !p.is(end) {
		e, err := p.operand(s, depth+1)
		if err != nil {
			return o, err
		}
		if o.List = append(o.List, e); len(o.List) > MaxOperands {
			return o, p.errorf("the list has more than %d operands", MaxOperands)
		}
		if ok, err := p.accept(","); err != nil {
			return o, err
		} else if !ok {
			break
		}
	}
	return o, p.expect(end)
}

// memory parses an address operand (PTX ISA, "Addresses as Operands").
func (p *parser) memory(s *funcState, depth int) (Operand, error) {
	o := Operand{Kind: KindMem}
	if err := p.expect("["); err != nil {
		return o, err
	}
	for first := true; ; first = false {
		e, err := p.offsetOperand(s, depth)
		if err != nil {
			return o, err
		}
		if first {
			o.Off, e.Off = e.Off, 0
			if e.Kind == KindInt {
				o.Off = int64(e.Bits)
				if p.is("]") {
					break
				}
			}
		}
		o.List = append(o.List, e)
		if ok, err := p.accept(","); err != nil {
			return o, err
		} else if !ok {
			break
		}
	}
	return o, p.expect("]")
}

func (p *parser) offsetOperand(s *funcState, depth int) (Operand, error) {
	if p.tok.kind != tokWord {
		return p.operand(s, depth+1)
	}
	w, err := p.word()
	if err != nil {
		return Operand{}, err
	}
	o := p.name(s, w)
	if p.is("+") || p.is("-") {
		c, err := p.constant()
		if err != nil {
			return o, err
		}
		if c.Kind != KindInt {
			return o, p.errorf("the offset of an address must be an integer")
		}
		o.Off = int64(c.Bits)
	}
	return o, nil
}
