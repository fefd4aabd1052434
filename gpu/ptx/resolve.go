package ptx

// resolve replaces the names of labels by positions in the body, now that all
// labels are known.
func (p *parser) resolve(s *funcState) error {
	for i := range s.f.Body {
		in := &s.f.Body[i]
		for j := range in.Args {
			if err := resolveOperand(s, in, &in.Args[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func resolveOperand(s *funcState, in *Inst, o *Operand) error {
	for i := range o.List {
		if err := resolveOperand(s, in, &o.List[i]); err != nil {
			return err
		}
	}
	if o.Kind == KindReg && o.Name != "" && !in.isVideo() { // the name does not exist
		*o = Operand{Kind: KindSpecial, Name: s.f.Regs[o.Reg].Name + "." + o.Name}
	}
	if o.Kind != KindLabel {
		return nil
	}
	l, ok := findLabel(s, o.Target, o.Name)
	switch {
	case !ok:
		return in.Errorf("unknown name %s", o.Name)
	case l.proto:
		o.Kind = KindProto
	case l.targets != nil:
		o.Kind = KindTargets
		for _, t := range l.targets {
			at, ok := findLabel(s, t.Target, t.Name)
			if !ok || at.proto || at.targets != nil {
				return in.Errorf("unknown branch target %s", t.Name)
			}
			o.Targets = append(o.Targets, at.at)
		}
	default:
		o.Target = l.at
	}
	return nil
}

func findLabel(s *funcState, from int, name string) (l label, ok bool) {
	s.walk(from, func(c *scope) bool { l, ok = c.labels[name]; return ok })
	return l, ok
}
