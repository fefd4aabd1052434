package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// parser has one token of look-ahead.
type parser struct {
	lex    lexer
	tok    token
	mod    *Module
	vars   map[string]*Var
	funcs  map[string]*Func
	insts  int
	inited uint64 // total bytes of initialisers
	files  *files
	source SourceLine // of the following instructions
	budget *budget    // shared by modules that are linked
	arena  arena
	// outline skips the bodies of functions.
	outline bool
}

// Parse parses and checks a whole module. The error is an *Error.
func Parse(src string) (*Module, error) { return parse(src, false, newBudget(len(src))) }

// Outline parses a module's variables and the heads of its functions: names,
// parameters and directives. In a body it only checks that the braces match;
// Func.Vars and Func.Body stay empty, and MaxInstructions does not apply. The
// error is an *Error.
func Outline(src string) (*Module, error) { return parse(src, true, newBudget(len(src))) }

func parse(src string, outline bool, b *budget) (*Module, error) {
	p, err := parsed(src, outline, b)
	if err != nil {
		return nil, err
	}
	return p.mod, nil
}

// parsed returns a parser that has parsed a whole module.
func parsed(src string, outline bool, b *budget) (*parser, error) {
	if len(src) > MaxSource {
		return nil, &Error{Line: 1, Msg: fmt.Sprintf("the source has %d bytes, want at most %d", len(src), MaxSource)}
	}
	p := &parser{
		lex: lexer{src: src, line: 1}, mod: &Module{AddressSize: 64}, files: &files{},
		vars: map[string]*Var{}, funcs: map[string]*Func{}, budget: b, outline: outline,
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.tok.kind != tokEOF {
		if err := p.topLevel(); err != nil {
			return nil, err
		}
	}
	if p.mod.Major == 0 {
		return nil, &Error{Line: 1, Msg: "the source has no .version directive"}
	}
	return p, p.checkRelocs()
}

func (p *parser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{Line: p.tok.line, Msg: message(format, args)}
}

func (p *parser) is(text string) bool { return p.tok.kind == tokPunct && p.tok.text == text }

// accept consumes a punctuation mark if it is next.
func (p *parser) accept(text string) (bool, error) {
	if !p.is(text) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(text string) error {
	if !p.is(text) {
		return p.errorf("expected %q, found %q", text, p.tok.text)
	}
	return p.advance()
}

func (p *parser) word() (string, error) {
	if p.tok.kind != tokWord {
		return "", p.errorf("expected a name, found %q", p.tok.text)
	}
	s := p.tok.text
	return s, p.advance()
}

func (p *parser) uint(limit uint64) (uint64, error) {
	if p.tok.kind != tokNumber {
		return 0, p.errorf("expected a number, found %q", p.tok.text)
	}
	o, ok := parseNumber(p.tok.text)
	if !ok || o.Kind != KindInt || o.Bits > limit {
		return 0, p.errorf("number %q, want an integer of 0 to %d", p.tok.text, limit)
	}
	return o.Bits, p.advance()
}

// skipTo skips tokens up to and including the given mark.
func (p *parser) skipTo(mark string) error {
	for !p.is(mark) {
		if p.tok.kind == tokEOF {
			return p.errorf("expected %q, found the end of the source", mark)
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	return p.advance()
}

// topLevel parses one directive (PTX ISA, "Directives").
func (p *parser) topLevel() error {
	if ok, err := p.accept(";"); ok {
		return err
	}
	d, err := p.word()
	if err != nil {
		return err
	}
	switch d {
	case ".version":
		return p.version()
	case ".target":
		return p.target()
	case ".address_size":
		n, err := p.uint(64)
		if err != nil {
			return err
		}
		if n != 64 {
			return p.errorf("not implemented: .address_size %d, want 64", n)
		}
		return nil
	case ".file":
		return p.file()
	case ".loc":
		return p.loc()
	case ".section":
		return p.skipTo("}")
	case ".pragma":
		return p.skipTo(";")
	case ".alias":
		return p.errorf("not implemented: directive .alias")
	}
	extern, link := false, Internal
	for linking := true; linking; {
		switch d {
		case ".extern":
			extern = true
		case ".visible":
			link = Visible
		case ".weak":
			link = Weak
		case ".common":
			link = Common
		default:
			linking = false
			continue
		}
		if d, err = p.word(); err != nil {
			return err
		}
	}
	if d == ".entry" || d == ".func" {
		return p.function(d == ".entry", extern, link)
	}
	return p.variables(d, extern, func(v *Var) error {
		v.Link = link
		return p.addModuleVar(v)
	})
}

func (p *parser) addModuleVar(v *Var) error {
	if v.Space == Register || v.Space == Param || v.Space == Local && !v.Extern {
		return &Error{Line: v.Line, Msg: fmt.Sprintf("variable %s outside of a function is .%s, want .global, .const, .shared or .local", v.Name, v.Space)}
	}
	if old := p.vars[v.Name]; old != nil {
		if old.Extern && !v.Extern { // a definition after its declaration
			*old = *v
			return nil
		}
		if v.Extern {
			return nil
		}
		return &Error{Line: v.Line, Msg: "variable " + v.Name + " is declared twice"}
	}
	if len(p.mod.Vars) >= MaxVariables {
		return &Error{Line: v.Line, Msg: fmt.Sprintf("the module has more than %d variables", MaxVariables)}
	}
	p.vars[v.Name] = v
	p.mod.Vars = append(p.mod.Vars, v)
	return nil
}

func (p *parser) version() error {
	if p.tok.kind != tokNumber {
		return p.errorf("expected a version after .version, such as 8.4, found %q", p.tok.text)
	}
	major, minor, _ := strings.Cut(p.tok.text, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil || a < 1 || a > 99 {
		return p.errorf(".version %q, want MAJOR.MINOR, such as 8.4", p.tok.text)
	}
	p.mod.Major, p.mod.Minor = a, b
	return p.advance()
}

// target parses the architecture, with options in any order. "sm_90a" and
// "sm_100f" are architectures 90 and 100 with additional features.
func (p *parser) target() error {
	for {
		w, err := p.word()
		if err != nil {
			return err
		}
		if name, ok := strings.CutPrefix(w, "sm_"); ok {
			n, err := strconv.ParseUint(strings.TrimRight(name, "af"), 10, 16)
			if err != nil || n == 0 {
				return p.errorf(".target %q, want an architecture such as sm_90", w)
			}
			p.mod.Arch = int(n)
		}
		if ok, err := p.accept(","); !ok || err != nil {
			return err
		}
	}
}

// checkRelocs resolves the names inside initialisers.
func (p *parser) checkRelocs() error {
	for _, v := range p.mod.Vars {
		for i := range v.Relocs {
			r := &v.Relocs[i]
			r.Var, r.Func = p.vars[r.Symbol], p.funcs[r.Symbol]
			if r.Var != nil {
				r.Func = nil
			} else if r.Func == nil {
				return &Error{Line: v.Line, Msg: "initialiser of " + v.Name + " names unknown variable " + r.Symbol}
			}
		}
	}
	return nil
}
