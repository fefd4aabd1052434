package ptx

import (
	"fmt"
	"strings"
)

// Object is a module to be linked, with its name in errors. An object of a
// library is left out unless it defines a name that others declare and do not
// define.
type Object struct {
	Name    string
	Module  *Module
	Library bool
}

// Source is the text of an object.
type Source struct {
	Name, Text string
	Library    bool
}

// ParseObjects parses modules that are to be linked. Together they may use as
// much memory as one module of their total size. The error is an *Error.
func ParseObjects(sources []Source) ([]Object, error) { return parseObjects(sources, false) }

// OutlineObjects parses them like Outline.
func OutlineObjects(sources []Source) ([]Object, error) { return parseObjects(sources, true) }

func parseObjects(sources []Source, outline bool) ([]Object, error) {
	total := 0
	for _, s := range sources {
		if total += len(s.Text); total > MaxSource {
			return nil, &Error{Object: s.Name, Line: 1, Msg: fmt.Sprintf("the sources of all objects together have more than %d bytes", MaxSource)}
		}
	}
	b := newBudget(total)
	objects := make([]Object, 0, len(sources))
	for _, s := range sources {
		m, err := parse(s.Text, outline, b)
		if err != nil {
			if e, ok := err.(*Error); ok { //nolint:errorlint // our own, never wrapped
				e.Object = s.Name
			}
			return nil, err
		}
		if m.Arch == 0 {
			return nil, &Error{Object: s.Name, Line: 1, Msg: noArch}
		}
		objects = append(objects, Object{Name: s.Name, Module: m, Library: s.Library})
	}
	return objects, nil
}

const noArch = "the source has no .target directive with an architecture, such as sm_70"

// builtin are functions that no object defines: the device provides them (CUDA C++
// Programming Guide, "Dynamic Global Memory Allocation", "Formatted Output", "Assertion",
// "Conditional Graph Nodes").
var builtin = map[string]bool{
	"malloc": true, "free": true, "vprintf": true, "__assertfail": true, "cudaGraphSetConditional": true,
	LaunchBuffer: true, LaunchKernel: true,
}

// The functions by which the soft GPU's device runtime launches kernels from kernels.
const (
	LaunchBuffer = "__basalt_launch_buffer"
	LaunchKernel = "__basalt_launch_kernel"
)

// mathPrefix begins the names of libdevice's functions, which the device provides
// if no object does. The device determines which of them exist.
const mathPrefix = "__nv_"

// Builtin reports whether a function without a body is one that the device
// provides.
func (f *Func) Builtin() bool {
	return f.Extern && (builtin[f.Name] || strings.HasPrefix(f.Name, mathPrefix))
}

// Link creates one module from several (PTX ISA, "Linking Directives"). A name
// without .visible, .weak or .common is local to its object; a weak definition is
// replaced by one that is not weak, and otherwise the first is used. A used name
// that no object defines is an error, and so is a second definition. Link changes
// the modules: they must not be used otherwise. The error is an *Error.
func Link(objects []Object) (*Module, error) {
	l := &linker{vars: map[string]*Var{}, funcs: map[string]*Func{}, out: &Module{AddressSize: 64}}
	objects = needed(objects)
	for i, o := range objects {
		if o.Name == "" {
			return nil, &Error{Line: 1, Msg: fmt.Sprintf("object %d has no name", i)}
		}
		if err := l.define(o); err != nil {
			return nil, err
		}
	}
	for _, o := range objects {
		if err := l.object(o); err != nil {
			return nil, err
		}
	}
	for _, o := range objects { // exported names are resolved before an object's own
		l.collect(o.Module, func(k Linkage) bool { return k != Internal })
	}
	for _, o := range objects {
		l.collect(o.Module, func(k Linkage) bool { return k == Internal })
	}
	if len(l.out.Funcs) > MaxFunctions || len(l.out.Vars) > MaxVariables {
		return nil, &Error{Line: 1, Msg: fmt.Sprintf("all objects together have more than %d functions or %d variables", MaxFunctions, MaxVariables)}
	}
	return l.out, nil
}

// needed leaves out the objects of libraries that define no missing name.
func needed(objects []Object) []Object {
	var chosen []Object
	taken := make([]bool, len(objects))
	by := map[string]int{} // names and the objects that define them: those of libraries come last
	for _, library := range []bool{false, true} {
		for i, o := range objects {
			if o.Library != library {
				continue
			}
			if !library {
				chosen, taken[i] = append(chosen, o), true
			}
			o.Module.names(func(name string, extern bool) {
				if _, known := by[name]; !extern && !known {
					by[name] = i
				}
			})
		}
	}
	for next := 0; next < len(chosen); next++ {
		chosen[next].Module.names(func(name string, extern bool) {
			if i, ok := by[name]; ok && extern && !taken[i] {
				chosen, taken[i] = append(chosen, objects[i]), true
			}
		})
	}
	return chosen
}

// names calls each for every name that the module declares or exports.
func (m *Module) names(each func(name string, extern bool)) {
	for _, v := range m.Vars {
		if v.Extern || v.Link != Internal {
			each(v.Name, v.Extern)
		}
	}
	for _, f := range m.Funcs {
		if f.Extern || f.Link != Internal {
			each(f.Name, f.Extern)
		}
	}
}

type linker struct {
	vars  map[string]*Var // exported definitions
	funcs map[string]*Func
	out   *Module
	insts int
}

// define adds an object's exported definitions.
func (l *linker) define(o Object) error {
	m := o.Module
	if l.out.Major < m.Major || l.out.Major == m.Major && l.out.Minor < m.Minor {
		l.out.Major, l.out.Minor = m.Major, m.Minor
	}
	l.out.Arch = max(l.out.Arch, m.Arch)
	for _, v := range m.Vars {
		if v.Object = o.Name; v.Extern || v.Link == Internal {
			continue
		}
		if err := l.defineVar(v); err != nil {
			return err
		}
	}
	for _, f := range m.Funcs {
		if f.Object = o.Name; f.Extern || f.Link == Internal && !f.Entry {
			continue
		}
		if l.insts += len(f.Body); l.insts > MaxInstructions {
			return &Error{Object: o.Name, Line: f.Line, Msg: fmt.Sprintf("all objects together have more than %d instructions", MaxInstructions)}
		}
		old := l.funcs[f.Name]
		switch {
		case old == nil || old.Link == Weak && f.Link != Weak:
			l.funcs[f.Name] = f
		case f.Link != Weak:
			return twice(o.Name, f.Line, "function "+f.Name, old.Object, old.Line)
		}
	}
	return nil
}

func (l *linker) defineVar(v *Var) error {
	old := l.vars[v.Name]
	if old == nil {
		l.vars[v.Name] = v
		return nil
	}
	if old.Space != v.Space {
		return &Error{Object: v.Object, Line: v.Line, Msg: fmt.Sprintf("variable %s is .%s here and .%s in %s, line %d", v.Name, v.Space, old.Space, old.Object, old.Line)}
	}
	gives := func(k Linkage) bool { return k == Weak || k == Common }
	switch {
	case gives(old.Link) && (!gives(v.Link) || old.Link == Common && v.Link == Common && v.Size > old.Size):
		l.vars[v.Name] = v
	case !gives(v.Link):
		return twice(v.Object, v.Line, "variable "+v.Name, old.Object, old.Line)
	}
	return nil
}

func twice(object string, line int, what, other string, otherLine int) error {
	return &Error{Object: object, Line: line, Msg: fmt.Sprintf("%s is already defined in %s, line %d", what, other, otherLine)}
}

// object replaces the names in one object by their definitions.
func (l *linker) object(o Object) error {
	for _, v := range o.Module.Vars {
		for i := range v.Relocs {
			r := &v.Relocs[i]
			var err error
			if r.Var != nil {
				r.Var, err = l.variable(o, r.Var, v.Line)
			} else {
				r.Func, err = l.function(o, r.Func, v.Line)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, f := range o.Module.Funcs {
		if l.dropped(f) {
			continue
		}
		for i := range f.Body {
			in := &f.Body[i]
			for j := range in.Args {
				if err := l.operand(o, in, &in.Args[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dropped reports whether a function was replaced by another with its name.
func (l *linker) dropped(f *Func) bool {
	return f.Extern || (f.Link != Internal || f.Entry) && l.funcs[f.Name] != f
}

func (l *linker) operand(o Object, in *Inst, a *Operand) (err error) {
	for i := range a.List {
		if err := l.operand(o, in, &a.List[i]); err != nil {
			return err
		}
	}
	switch a.Kind {
	case KindVar:
		if a.Var.Object != "" { // not a variable of a function
			a.Var, err = l.variable(o, a.Var, in.Line)
		}
	case KindFunc:
		a.Func, err = l.function(o, a.Func, in.Line)
	}
	return err
}

func (l *linker) variable(o Object, v *Var, line int) (*Var, error) {
	if !v.Extern && v.Link == Internal {
		return v, nil
	}
	def := l.vars[v.Name]
	switch {
	case def == nil && v.Space == Shared:
		return v, nil // dynamic shared memory
	case def == nil:
		return nil, &Error{Object: o.Name, Line: line, Msg: "unresolved extern variable " + v.Name}
	case def.Space != v.Space:
		return nil, &Error{Object: o.Name, Line: line, Msg: fmt.Sprintf("variable %s is .%s here and .%s in %s, line %d", v.Name, v.Space, def.Space, def.Object, def.Line)}
	}
	return def, nil
}

func (l *linker) function(o Object, f *Func, line int) (*Func, error) {
	if !f.Extern && f.Link == Internal && !f.Entry {
		return f, nil
	}
	def := l.funcs[f.Name]
	switch {
	case def != nil && (len(def.Params) != len(f.Params) || len(def.Returns) != len(f.Returns)):
		return nil, &Error{Object: o.Name, Line: line, Msg: fmt.Sprintf("function %s has other parameters than in %s, line %d", f.Name, def.Object, def.Line)}
	case def != nil:
		return def, nil
	case f.Builtin():
		return f, nil
	}
	return nil, &Error{Object: o.Name, Line: line, Msg: "unresolved extern function " + f.Name}
}

// collect appends the definitions of an object whose linkage is wanted.
func (l *linker) collect(m *Module, wanted func(Linkage) bool) {
	for _, v := range m.Vars {
		if wanted(v.Link) && !v.Extern && (v.Link == Internal || l.vars[v.Name] == v) {
			l.out.Vars = append(l.out.Vars, v)
		}
	}
	for _, f := range m.Funcs {
		if wanted(f.Link) && !l.dropped(f) {
			l.out.Funcs = append(l.out.Funcs, f)
		}
	}
}
