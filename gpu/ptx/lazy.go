package ptx

import (
	"maps"
	"strings"
)

// Lazy is a module whose functions are parsed when they are needed: programs load
// modules of many megabytes for one kernel. It keeps no reference to the source.
// It is not safe for concurrent use.
type Lazy struct {
	Module *Module
	vars   map[string]*Var
	funcs  map[string]*Func
	files  *files
}

// ParseLazy parses a module like Outline. Functions that declare variables with a
// device address are parsed at once, because the module needs them. The error is an
// *Error.
func ParseLazy(src string) (*Lazy, error) {
	p, err := parsed(src, true, newBudget(len(src)))
	if err != nil {
		return nil, err
	}
	z := &Lazy{Module: p.mod, vars: p.vars, funcs: p.funcs, files: p.files}
	r := z.Open(src)
	for _, f := range p.mod.Funcs {
		if f.whole {
			if err := r.read(f); err != nil {
				return nil, err
			}
		}
	}
	return z, nil
}

// Reading parses functions of a Lazy module. Until it is closed, they may together
// use as much memory as a module of the source's size.
type Reading struct {
	p    *parser
	open []*Func
}

// Open begins to parse functions. src must be the source that the module was
// parsed from.
func (z *Lazy) Open(src string) *Reading {
	return &Reading{p: &parser{
		lex: lexer{src: src}, mod: z.Module, vars: z.vars, funcs: z.funcs, budget: newBudget(len(src)),
		files: &files{names: maps.Clone(z.files.names)}, // instructions of programs refer to these, and a body may add more
	}}
}

// Read parses a function's body, unless it was parsed already. The error is an
// *Error.
func (r *Reading) Read(f *Func) error {
	if f.Extern || f.whole {
		return nil
	}
	f.whole = true
	r.open = append(r.open, f)
	return r.read(f)
}

func (r *Reading) read(f *Func) error {
	r.p.lex.pos, r.p.lex.line = f.at, f.Line
	if err := r.p.advance(); err != nil {
		return err
	}
	s, err := r.p.head(f.Entry, f.Link)
	if err == nil {
		err = r.p.read(s)
	}
	if err != nil {
		return err
	}
	s.f.whole, s.f.Object = true, f.Object
	*f = *s.f
	return nil
}

// Close drops the parsed functions.
func (r *Reading) Close() {
	for _, f := range r.open {
		f.Regs, f.Vars, f.Body, f.whole = nil, nil, nil, false
	}
	r.open = nil
}

// declares reports whether a function's body may declare variables that have a
// device address: a directive .global or .const. In instructions, these words
// follow others.
func declares(body string) bool {
	for _, space := range []string{".global", ".const"} {
		for rest := body; ; {
			i := strings.Index(rest, space)
			if i < 0 {
				break
			}
			if i == 0 || !wordStart(rest[i-1]) && !digit(rest[i-1]) {
				return true
			}
			rest = rest[i+len(space):]
		}
	}
	return false
}
