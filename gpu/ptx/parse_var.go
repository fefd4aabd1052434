package ptx

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// variables parses a declaration whose first directive d was consumed already
// (PTX ISA, "Variables"), and passes each declared variable to add.
func (p *parser) variables(d string, extern bool, add func(*Var) error) error {
	proto := Var{Extern: extern, Line: p.tok.line}
	vec, err := p.declaration(d, &proto)
	if err != nil {
		return err
	}
	for {
		v := proto
		if err := p.declarator(&v, vec); err != nil {
			return err
		}
		if err := p.each(&v, add); err != nil {
			return err
		}
		if ok, err := p.accept(","); err != nil {
			return err
		} else if !ok {
			return p.expect(";")
		}
	}
}

// declaration parses the directives before the name: space, alignment, vector,
// type. It returns the vector width.
func (p *parser) declaration(d string, v *Var) (vec uint32, err error) {
	vec = 1
	seenSpace := false
	for {
		for _, part := range strings.Split(strings.TrimPrefix(d, "."), ".") {
			if !strings.HasPrefix(d, ".") {
				return 0, p.errorf("unexpected %q", d)
			}
			part, _, _ = strings.Cut(part, "::") // .param::entry and similar
			if s, ok := SpaceByName(part); ok {
				if !seenSpace { // later ones describe what a .ptr points to
					v.Space = s
				}
				seenSpace = true
				continue
			}
			if t, ok := TypeByName(part); ok {
				v.Type = t
				continue
			}
			switch part {
			case "v2":
				vec = 2
			case "v4":
				vec = 4
			case "align":
				n, err := p.uint(1 << 16)
				if err != nil {
					return 0, err
				}
				if n == 0 || n&(n-1) != 0 {
					return 0, p.errorf("alignment of %d bytes, want a power of two", n)
				}
				if v.Type == NoType { // after the type it belongs to a .ptr
					v.Align = uint32(n)
				}
			case "ptr", "managed", "unified":
			case "attribute":
				if err := p.attributes(v); err != nil {
					return 0, err
				}
			default:
				return 0, p.errorf("not implemented: .%s in a declaration", part)
			}
		}
		if p.tok.kind != tokWord || !strings.HasPrefix(p.tok.text, ".") {
			break
		}
		if d, err = p.word(); err != nil {
			return 0, err
		}
	}
	if !seenSpace || v.Type == NoType {
		return 0, p.errorf("a declaration must have a state space and a type, such as .global .b32")
	}
	return vec, nil
}

// attributes parses the list after .attribute (PTX ISA, "Variable and Function
// Attribute Directive: .attribute").
func (p *parser) attributes(v *Var) error {
	for !p.is(")") {
		if p.tok.kind == tokEOF {
			return p.errorf("expected %q, found the end of the source", ")")
		}
		v.Managed = v.Managed || p.tok.text == ".managed"
		if err := p.advance(); err != nil {
			return err
		}
	}
	return p.advance()
}

// each passes a variable to add, or the variables that a count after its name
// stands for: .param .u64 %P<2> is %P0 and %P1.
func (p *parser) each(v *Var, add func(*Var) error) error {
	if !p.is("<") {
		return add(v)
	}
	n, err := p.count(MaxParameters)
	if err != nil {
		return err
	}
	if err := p.charge(costVar * n); err != nil {
		return err
	}
	for i := range int(n) {
		one := *v
		one.Name += strconv.Itoa(i)
		if err := add(&one); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) declarator(v *Var, vec uint32) (err error) {
	if err := p.charge(costVar); err != nil {
		return err
	}
	v.Line = p.tok.line
	if v.Name, err = p.word(); err != nil {
		return err
	}
	v.Name = strings.Clone(v.Name)
	elem := uint64(v.Type.Size()) * uint64(vec)
	if v.Align == 0 {
		v.Align = uint32(elem)
	}
	v.Size = elem
	unsized := false
	for p.is("[") {
		if err := p.advance(); err != nil {
			return err
		}
		if p.is("]") {
			unsized = true
		} else {
			n, err := p.uint(MaxVarBytes)
			if err != nil {
				return err
			}
			if v.Size *= n; v.Size > MaxVarBytes {
				return p.errorf("variable %s has more than %d bytes", v.Name, uint64(MaxVarBytes))
			}
		}
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	if ok, err := p.accept("="); err != nil {
		return err
	} else if ok {
		if v.Space != Global && v.Space != Const {
			return p.errorf("variable %s with an initialiser is .%s, want .global or .const", v.Name, v.Space)
		}
		if err := p.initialiser(v, 0); err != nil {
			return err
		}
		if unsized {
			v.Size, unsized = uint64(len(v.Init)), false
		}
		if uint64(len(v.Init)) > v.Size {
			return p.errorf("the initialiser of variable %s has %d bytes, want at most its %d", v.Name, len(v.Init), v.Size)
		}
	}
	if unsized {
		if !v.Extern {
			return p.errorf("array %s has no size: want one, an initialiser or .extern", v.Name)
		}
		v.Size = 0
	}
	return nil
}

func (p *parser) initialiser(v *Var, depth int) error {
	if depth > MaxScopes {
		return p.errorf("the initialiser of variable %s has more than %d lists in each other", v.Name, MaxScopes)
	}
	if v.Type.Opaque() { // the state of a sampler, which only binding could use
		return p.skipTo("}")
	}
	if !p.is("{") {
		return p.initValue(v)
	}
	if err := p.advance(); err != nil {
		return err
	}
	for !p.is("}") {
		if err := p.initialiser(v, depth+1); err != nil {
			return err
		}
		if ok, err := p.accept(","); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	return p.expect("}")
}

// initValue appends one element: a constant or the address of a variable.
func (p *parser) initValue(v *Var) error {
	size := v.Type.Size()
	if p.inited += uint64(size); p.inited > MaxInitBytes {
		return p.errorf("the initialisers of the module have more than %d bytes", uint64(MaxInitBytes))
	}
	if err := p.charge(2 * uint64(size)); err != nil {
		return err
	}
	if p.tok.kind == tokWord {
		return p.initAddress(v, size)
	}
	o, err := p.constant()
	if err != nil {
		return err
	}
	bits := o.Bits
	switch {
	case o.Kind == KindF64 && v.Type == F32:
		bits = uint64(math.Float32bits(float32(math.Float64frombits(bits))))
	case o.Kind == KindInt && v.Type == F32:
		bits = uint64(math.Float32bits(float32(int64(bits))))
	case o.Kind == KindInt && v.Type == F64:
		bits = math.Float64bits(float64(int64(bits)))
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	v.Init = append(v.Init, b[:size]...)
	return nil
}

func (p *parser) initAddress(v *Var, size uint32) (err error) {
	r := Reloc{Offset: uint64(len(v.Init)), Size: size}
	if r.Symbol, err = p.word(); err != nil {
		return err
	}
	if r.Symbol == "generic" {
		r.Generic = true
		if err := p.expect("("); err != nil {
			return err
		}
		if r.Symbol, err = p.word(); err != nil {
			return err
		}
		if err := p.expect(")"); err != nil {
			return err
		}
	}
	if size != 8 {
		return p.errorf("address %s in an initialiser of elements of %d bytes, want 8", r.Symbol, size)
	}
	if p.is("+") || p.is("-") {
		minus := p.is("-")
		if err := p.advance(); err != nil {
			return err
		}
		n, err := p.uint(MaxVarBytes)
		if err != nil {
			return err
		}
		if r.Addend = int64(n); minus {
			r.Addend = -r.Addend
		}
	}
	if err := p.charge(costReloc); err != nil {
		return err
	}
	r.Symbol = strings.Clone(r.Symbol)
	v.Relocs = append(v.Relocs, r)
	v.Init = append(v.Init, make([]byte, size)...)
	return nil
}

// constant parses a number with an optional sign.
func (p *parser) constant() (Operand, error) {
	minus := false
	for p.is("-") || p.is("+") {
		minus = minus != p.is("-")
		if err := p.advance(); err != nil {
			return Operand{}, err
		}
	}
	o, ok := parseNumber(p.tok.text)
	if p.tok.kind != tokNumber || !ok {
		return o, p.errorf("expected a constant, found %q", p.tok.text)
	}
	if minus {
		o = negate(o)
	}
	return o, p.advance()
}
