package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// scope is one { } of a function body: names are valid from their declaration to
// the end of the scope.
type scope struct {
	parent  int
	regs    map[string]int
	ranges  map[string]regRange // .reg .b32 %r<10>
	vars    map[string]*Var
	labels  map[string]label
	vectors map[string]int // .reg .v2 .u32 %r: the length; the elements are registers %r.x and %r.y
}

type regRange struct{ first, count int }

// label is a position in the body, a branch table or a call prototype.
type label struct {
	at      int
	targets []Operand // unresolved names of .branchtargets
	proto   bool
}

type funcState struct {
	f      *Func
	scopes []scope
	cur    int
	depth  int
}

func (s *funcState) push() {
	s.scopes = append(s.scopes, scope{
		parent: s.cur, regs: map[string]int{}, ranges: map[string]regRange{},
		vars: map[string]*Var{}, labels: map[string]label{},
	})
	s.cur = len(s.scopes) - 1
	s.depth++
}

func (s *funcState) pop() {
	s.cur = s.scopes[s.cur].parent
	s.depth--
}

// walk visits the scopes from the given one outwards until f tells it to stop.
func (s *funcState) walk(from int, f func(*scope) bool) {
	for i := from; i >= 0; i = s.scopes[i].parent {
		if f(&s.scopes[i]) {
			return
		}
	}
}

func (s *funcState) reg(name string) (int, bool) {
	found := -1
	s.walk(s.cur, func(c *scope) bool {
		if r, ok := c.regs[name]; ok {
			found = r
			return true
		}
		cut := len(name)
		for cut > 0 && digit(name[cut-1]) {
			cut--
		}
		for ; cut < len(name); cut++ { // "%r1<5>" declares %r10 … %r14
			r, ok := c.ranges[name[:cut]]
			n, err := strconv.Atoi(name[cut:])
			if ok && err == nil && n < r.count && (name[cut] != '0' || cut == len(name)-1) {
				found = r.first + n
				return true
			}
		}
		return false
	})
	return found, found >= 0
}

func (s *funcState) local(name string) *Var {
	var found *Var
	s.walk(s.cur, func(c *scope) bool { found = c.vars[name]; return found != nil })
	return found
}

// head parses what precedes a function's body: name, parameters and directives.
// The parser is after .entry or .func.
func (p *parser) head(entry bool, link Linkage) (s *funcState, err error) {
	if err := p.charge(costFunc + costScope); err != nil {
		return nil, err
	}
	f := &Func{Entry: entry, Link: link, Line: p.tok.line, at: p.tok.pos}
	s = &funcState{f: f, cur: -1}
	s.push()
	p.source = SourceLine{}
	if !entry && p.is("(") {
		if f.Returns, err = p.params(s); err != nil {
			return nil, err
		}
	}
	if f.Name, err = p.word(); err != nil {
		return nil, err
	}
	f.Name = strings.Clone(f.Name)
	if p.is("(") {
		if f.Params, err = p.params(s); err != nil {
			return nil, err
		}
	}
	if entry {
		if err := layoutParams(f); err != nil {
			return nil, err
		}
	}
	return s, p.funcDirectives(f)
}

func (p *parser) function(entry, extern bool, link Linkage) error {
	s, err := p.head(entry, link)
	if err != nil {
		return err
	}
	f := s.f
	old := p.funcs[f.Name]
	if old != nil && !old.Extern && !p.is(";") {
		return p.errorf("function %s is defined twice, first in line %d", f.Name, old.Line)
	}
	if len(p.mod.Funcs) >= MaxFunctions {
		return p.errorf("the module has more than %d functions", MaxFunctions)
	}
	target := old
	if target == nil {
		target = f
		p.funcs[f.Name] = f
		p.mod.Funcs = append(p.mod.Funcs, f)
	}
	if ok, err := p.accept(";"); ok || err != nil { // a declaration
		if old == nil {
			f.Extern = true
		}
		target.Link = max(target.Link, link)
		return err
	}
	f.Link = max(f.Link, target.Link)
	if extern {
		return p.errorf(".extern function %s has a body", f.Name)
	}
	read := p.read
	if p.outline {
		read = p.skipBody
	}
	if err := read(s); err != nil {
		return err
	}
	*target = *f
	return nil
}

// read parses a function's body.
func (p *parser) read(s *funcState) error {
	s.f.Body = p.arena.insts
	if err := p.body(s); err != nil {
		return err
	}
	s.f.Body = p.arena.body(s.f.Body)
	return p.resolve(s)
}

// params parses a parenthesised list of .param or .reg declarations.
func (p *parser) params(s *funcState) ([]*Var, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list []*Var
	for !p.is(")") {
		v := &Var{Line: p.tok.line}
		d, err := p.word()
		if err != nil {
			return nil, err
		}
		vec, err := p.declaration(d, v)
		if err != nil {
			return nil, err
		}
		v.Extern = true // permits an unsized last array
		if err := p.declarator(v, vec); err != nil {
			return nil, err
		}
		v.Extern = false
		switch v.Space {
		case Register:
			if v.Reg, err = p.addReg(s, v.Name, v.Type); err != nil {
				return nil, err
			}
		case Param:
			s.scopes[s.cur].vars[v.Name] = v
		default:
			return nil, p.errorf("parameter %s is .%s, want .param or .reg", v.Name, v.Space)
		}
		if list = append(list, v); len(list) > MaxParameters {
			return nil, p.errorf("a function has more than %d parameters", MaxParameters)
		}
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			break
		}
	}
	return list, p.expect(")")
}

// layoutParams sets the offsets of kernel parameters: in declaration order, each
// at its own alignment.
func layoutParams(f *Func) error {
	var at uint64
	for _, v := range f.Params {
		if v.Space != Param {
			return &Error{Line: v.Line, Msg: fmt.Sprintf("parameter %s of kernel %s is .%s, want .param", v.Name, f.Name, v.Space)}
		}
		a := uint64(v.Align)
		at = (at + a - 1) &^ (a - 1)
		v.Offset = uint32(at)
		if at += v.Size; at > 32764 { // PTX ISA, "Kernel Function Parameters"
			return &Error{Line: v.Line, Msg: "the parameters of kernel " + f.Name + " have more than 32764 bytes"}
		}
	}
	return nil
}

// funcDirectives parses the performance-tuning directives after the parameters.
func (p *parser) funcDirectives(f *Func) error {
	for p.tok.kind == tokWord && strings.HasPrefix(p.tok.text, ".") {
		d, err := p.word()
		if err != nil {
			return err
		}
		switch d {
		case ".maxntid":
			f.MaxTID, err = p.dims()
		case ".reqntid":
			f.ReqTID, err = p.dims()
		case ".minnctapersm", ".maxnreg", ".maxnctapersm", ".maxclusterrank":
			_, err = p.uint(1 << 31)
		case ".reqnctapercluster":
			f.Cluster, err = p.dims()
		case ".noreturn", ".blocksareclusters", ".unique", ".explicitcluster":
		case ".pragma":
			err = p.skipTo(";")
		default:
			err = p.errorf("not implemented: directive %s of a function", d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) dims() (d [3]uint32, err error) {
	d = [3]uint32{1, 1, 1}
	for i := range d {
		n, err := p.uint(1 << 31)
		if err != nil {
			return d, err
		}
		d[i] = uint32(n)
		if ok, err := p.accept(","); !ok || err != nil {
			return d, err
		}
	}
	return d, nil
}

func (p *parser) addReg(s *funcState, name string, t Type) (int, error) {
	if len(s.f.Regs) >= MaxRegisters {
		return 0, p.errorf("function %s has more than %d registers", s.f.Name, MaxRegisters)
	}
	if err := p.charge(costRegister); err != nil {
		return 0, err
	}
	s.f.Regs = append(s.f.Regs, Reg{Name: name, Type: t})
	n := len(s.f.Regs) - 1
	s.scopes[s.cur].regs[name] = n
	return n, nil
}

// registers parses a .reg declaration in a body.
func (p *parser) registers(s *funcState) error {
	var v Var
	vec, err := p.declaration(".reg", &v)
	if err != nil {
		return err
	}
	for {
		name, err := p.word()
		if err != nil {
			return err
		}
		if vec != 1 {
			if err := p.vectorReg(s, name, v.Type, int(vec)); err != nil {
				return err
			}
		} else if p.is("<") {
			n, err := p.count(MaxRegisters)
			if err != nil {
				return err
			}
			if len(s.f.Regs)+int(n) > MaxRegisters {
				return p.errorf("function %s has more than %d registers", s.f.Name, MaxRegisters)
			}
			if err := p.charge(costRegister * (n + 1)); err != nil {
				return err
			}
			s.scopes[s.cur].ranges[name] = regRange{first: len(s.f.Regs), count: int(n)}
			for i := range int(n) {
				s.f.Regs = append(s.f.Regs, Reg{Name: name + strconv.Itoa(i), Type: v.Type})
			}
		} else if _, err := p.addReg(s, name, v.Type); err != nil {
			return err
		}
		if ok, err := p.accept(","); err != nil {
			return err
		} else if !ok {
			return p.expect(";")
		}
	}
}

// count parses the <n> after a name that stands for n of them.
func (p *parser) count(limit uint64) (uint64, error) {
	if err := p.expect("<"); err != nil {
		return 0, err
	}
	n, err := p.uint(limit)
	if err != nil {
		return 0, err
	}
	return n, p.expect(">")
}

// elements are the names of a vector's elements.
var elements = [4]string{".x", ".y", ".z", ".w"}

// vectorReg declares a vector register (PTX ISA, "Vectors") as its elements.
func (p *parser) vectorReg(s *funcState, name string, t Type, n int) error {
	for _, e := range elements[:n] {
		if _, err := p.addReg(s, name+e, t); err != nil {
			return err
		}
	}
	c := &s.scopes[s.cur]
	if c.vectors == nil {
		c.vectors = map[string]int{}
	}
	c.vectors[name] = n
	return nil
}

// vector returns the operand of a vector register.
func (s *funcState) vector(name string) (o Operand, ok bool) {
	s.walk(s.cur, func(c *scope) bool {
		n := c.vectors[name]
		for _, e := range elements[:n] {
			o.List = append(o.List, Operand{Kind: KindReg, Reg: c.regs[name+e]})
		}
		return n > 0
	})
	o.Kind = KindVec
	return o, o.List != nil
}
