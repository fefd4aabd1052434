// Package cudaapi is the single description of the CUDA driver API: functions.txt
// has a row for every symbol, from which gen generates the parts of the guest
// library, the channel, the worker and its drivers.
//
// docs/adding-a-cuda-function.md shows how a function is added.
package cudaapi

//go:generate go run ./gen

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Table is the content of functions.txt.
type Table struct {
	Types     []Type
	Names     []Name
	Functions []*Function // in the order of the file
	by        map[string]*Function
	layouts   map[string]*Layout // by type
	latest    *Layout            // the one whose members are being parsed
}

// TypeKind describes how C declares a type.
type TypeKind string

// Kinds of types.
const (
	Handle TypeKind = "handle" // a pointer to an unknown struct
	Enum   TypeKind = "enum"   // int
	Struct TypeKind = "struct" // a struct of that tag, passed by its address
	Union  TypeKind = "union"  // a union, passed by its address
	Scalar TypeKind = "scalar" // another name of a scalar type
)

// Type is a C type that the API defines.
type Type struct {
	Kind TypeKind
	Name string
	Is   string // of a Handle or a Union the tag, of a Scalar the type
}

// Name is a name that programs pass to cuGetProcAddress.
type Name struct {
	Name string
	// Legacy and PerThread are the symbols by version, lowest first; they may
	// differ for per-thread default streams.
	Legacy, PerThread []Answer
}

// Answer is the symbol from a CUDA version (1000 × major + 10 × minor) on.
type Answer struct {
	Version int
	Symbol  string // "?": never found
}

// Implementation is the way in which a function is implemented.
type Implementation string

// Ways to implement a function.
const (
	Own    Implementation = "own"    // written by hand in gpu/guest/src
	As     Implementation = "as"     // calls Target with the same parameters
	Refuse Implementation = "refuse" // checks that there is a session and returns Target
	Call   Implementation = "call"   // becomes a command of the channel
	// PerThread calls Target with the thread's own default stream in place of
	// the null stream.
	PerThread Implementation = "per-thread"
)

// Function is one symbol.
type Function struct {
	Symbol         string
	Params         []Param
	Implementation Implementation
	Target         string // of As and PerThread a symbol, of Refuse an error without CUDA_ERROR_
	Op             int    // of Call: the command's number
	Stream         bool   // of Call: executed in the order of its stream, without a wait
	Capture        string // of Call with Stream: the function that adds it to a capture; empty if it is refused there
	Soft           string // of Call: the result of a device that does not support it, empty for success
	// Touches is, for a Call, how many bytes it reads or writes at an address, by
	// the parameter's name.
	Touches map[string]int
	Tags    map[string]string // of a union: the parameter that selects the member
	InOut   map[string]bool   // structs that are read and written
	Counts  map[string]Count  // of arrays
}

// Count is the number of elements of an array parameter: the value of another
// parameter minus Less, at most Max.
type Count struct {
	By        string
	Less, Max int
}

// Param is one parameter.
type Param struct{ Type, Name string }

// String returns the C declaration.
func (p Param) String() string {
	if strings.HasSuffix(p.Type, "*") {
		return p.Type + p.Name
	}
	return p.Type + " " + p.Name
}

// Prototype returns the C declaration without its storage class.
func (f *Function) Prototype() string {
	return "CUresult " + f.Symbol + "(" + params(f.Params) + ")"
}

func params(ps []Param) string {
	if len(ps) == 0 {
		return "void"
	}
	var all []string
	for _, p := range ps {
		all = append(all, p.String())
	}
	return strings.Join(all, ", ")
}

// Kind returns the kind of a type that the API defines, or an empty string.
func (t *Table) Kind(name string) TypeKind {
	for _, ty := range t.Types {
		if ty.Name == name {
			return ty.Kind
		}
	}
	return ""
}

// Function returns the row of a symbol, or nil.
func (t *Table) Function(symbol string) *Function { return t.by[symbol] }

var (
	typeLine     = regexp.MustCompile(`^(handle|enum|struct|union|scalar) (\w+)(?: = (.+))?$`)
	nameLine     = regexp.MustCompile(`^(\w+)((?: \d+=[\w?]+)+)(?: \|((?: \d+=[\w?]+)+))?$`)
	functionLine = regexp.MustCompile(`^\t(\w+)\(([^()]*)\) (own|as|refuse|call)((?: [\w=:-]+)*)$`)
	countText    = regexp.MustCompile(`^(\w+):(\w+)(?:-(\d))?:(\d+)$`)
	paramText    = regexp.MustCompile(`^(.*[ *])(\w+)$`)
	perThread    = regexp.MustCompile(`_pt[sd][zs]$`)
)

// Parse parses functions.txt. An error contains the line number.
func Parse(text string) (*Table, error) {
	t := &Table{by: map[string]*Function{}, layouts: map[string]*Layout{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := t.line(line); err != nil {
			return nil, fmt.Errorf("functions.txt:%d: %w", n, err)
		}
	}
	for _, name := range t.Names {
		for _, a := range slices.Concat(name.Legacy, name.PerThread) {
			if err := t.complete(a.Symbol); err != nil {
				return nil, fmt.Errorf("functions.txt: %s: %w", name.Name, err)
			}
		}
	}
	return t, t.check()
}

func (t *Table) line(line string) error {
	if m := typeLine.FindStringSubmatch(line); m != nil {
		t.Types = append(t.Types, Type{TypeKind(m[1]), m[2], m[3]})
		return nil
	}
	if m := nameLine.FindStringSubmatch(line); m != nil {
		t.latest = nil
		name := Name{Name: m[1], Legacy: answers(m[2]), PerThread: answers(m[3])}
		if m[3] == "" {
			name.PerThread = name.Legacy
		}
		t.Names = append(t.Names, name)
		return nil
	}
	if ok, err := t.layoutOf(line); ok {
		return err
	}
	if ok, err := t.member(line); ok {
		return err
	}
	m := functionLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("%q is not a type, a layout or a member of one, a name with its symbols, or a function", line)
	}
	f := &Function{Symbol: m[1], Implementation: Implementation(m[3])}
	if t.by[f.Symbol] != nil {
		return fmt.Errorf("%s is declared twice", f.Symbol)
	}
	if err := f.parse(m[2], strings.Fields(m[4])); err != nil {
		return fmt.Errorf("%s: %w", f.Symbol, err)
	}
	t.add(f)
	return nil
}

func (t *Table) add(f *Function) {
	t.Functions = append(t.Functions, f)
	t.by[f.Symbol] = f
}

func answers(s string) (all []Answer) {
	for _, f := range strings.Fields(s) {
		version, symbol, _ := strings.Cut(f, "=")
		n, _ := strconv.Atoi(version) // nameLine only matches digits
		all = append(all, Answer{n, symbol})
	}
	return all
}

// parse parses a function's parameters and the words after "own", "as", …
func (f *Function) parse(list string, words []string) error {
	if list != "void" {
		for p := range strings.SplitSeq(list, ",") {
			m := paramText.FindStringSubmatch(strings.TrimSpace(p))
			if m == nil {
				return fmt.Errorf("parameter %q has no name", p)
			}
			f.Params = append(f.Params, Param{strings.TrimSpace(m[1]), m[2]})
		}
	}
	switch f.Implementation {
	case Own:
		if len(words) > 0 {
			return fmt.Errorf("unexpected %q after own", words)
		}
	case As, Refuse:
		if len(words) != 1 {
			return fmt.Errorf("%s must be followed by one word, found %q", f.Implementation, words)
		}
		f.Target = words[0]
	case Call:
		return f.parseCall(words)
	}
	return nil
}

// parseCall parses the words after "call", which functions.txt explains.
func (f *Function) parseCall(words []string) (err error) {
	if len(words) == 0 {
		return fmt.Errorf("call must be followed by a command number")
	}
	if f.Op, err = strconv.Atoi(words[0]); err != nil {
		return fmt.Errorf("call %q: want a command number", words[0])
	}
	f.Touches, f.Tags, f.InOut, f.Counts = map[string]int{}, map[string]string{}, map[string]bool{}, map[string]Count{}
	for _, w := range words[1:] {
		option, value, _ := strings.Cut(w, "=")
		switch option {
		case "soft":
			f.Soft = value
		case "stream":
			f.Stream = true
		case "capture":
			f.Capture = value
		case "touch":
			name, bytes, _ := strings.Cut(value, ":")
			if f.Touches[name], err = strconv.Atoi(bytes); err != nil {
				return fmt.Errorf("call: %q: want touch=PARAMETER:BYTES", w)
			}
		case "by":
			union, tag, _ := strings.Cut(value, ":")
			f.Tags[union] = tag
		case "inout":
			f.InOut[value] = true
		case "count":
			m := countText.FindStringSubmatch(value)
			if m == nil {
				return fmt.Errorf("call: %q: want count=PARAMETER:PARAMETER[-LESS]:MAX", w)
			}
			c := Count{By: m[2]}
			c.Less, _ = strconv.Atoi(m[3]) // digits or nothing
			c.Max, _ = strconv.Atoi(m[4])
			f.Counts[m[1]] = c
		default:
			return fmt.Errorf("call: %q is neither stream, capture=FUNCTION, soft=ERROR, touch=PARAMETER:BYTES, by=UNION:PARAMETER, inout=PARAMETER nor count=PARAMETER:PARAMETER[-LESS]:MAX", w)
		}
	}
	return nil
}

// complete adds the form of a function for per-thread default streams when it
// has no row of its own.
func (t *Table) complete(symbol string) error {
	if symbol == "?" || t.by[symbol] != nil {
		return nil
	}
	base := t.by[perThread.ReplaceAllString(symbol, "")]
	if base == nil {
		return fmt.Errorf("%s has no row", symbol)
	}
	f := &Function{Symbol: symbol, Params: base.Params, Implementation: PerThread, Target: base.Symbol}
	if base.Implementation == Refuse {
		f.Implementation = As
	} else if !slices.ContainsFunc(base.Params, func(p Param) bool { return p.Type == "CUstream" }) {
		return fmt.Errorf("%s needs a row of its own: %s has no stream to replace", symbol, base.Symbol)
	}
	t.add(f)
	return nil
}

// check checks the consistency of the rows.
func (t *Table) check() error {
	for _, l := range t.Layouts() {
		if err := l.check(); err != nil {
			return fmt.Errorf("functions.txt: %w", err)
		}
	}
	ops := map[int]string{}
	for _, f := range t.Functions {
		if f.Implementation == As {
			to := t.by[f.Target]
			if to == nil || len(to.Params) != len(f.Params) {
				return fmt.Errorf("functions.txt: %s: as %s: the function does not exist or has another number of parameters", f.Symbol, f.Target)
			}
		}
		if f.Implementation != Call {
			continue
		}
		if other := ops[f.Op]; other != "" {
			return fmt.Errorf("functions.txt: %s and %s have the same command number %d", other, f.Symbol, f.Op)
		}
		ops[f.Op] = f.Symbol
	}
	return nil
}
