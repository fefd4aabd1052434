package cudaapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Command is a row with "call".
type Command struct {
	*Function
	Name    string // of the command, and of the method of worker.Context
	Args    []Arg  // in the order of the parameters
	Results []Arg  // returned numbers: at most two
	Outs    []Arg  // returned structs, in one record
}

// Arg is an argument or a result of a command.
type Arg struct {
	Param
	Handle string // kind of the object: "context", "stream", "event", "function", "module"; empty for a number
	Go     string // type of a number
	Bytes  int    // of an address: number of bytes from it that the command accesses
	// Layout is the layout of a struct or a union; Tag is the parameter that
	// selects the member of a union.
	Layout *Layout
	Tag    *Arg
	// Elements is the number of elements of an array of Go.
	Elements Count
}

// Pointer reports whether the parameter is a pointer to a value that is passed on.
func (a Arg) Pointer() bool { return a.Layout != nil || a.Elements.Max > 0 }

// As returns the argument's type in Go.
func (a Arg) As() string {
	switch {
	case a.Layout != nil:
		return "abi." + a.Layout.Name()
	case a.Elements.Max > 0:
		return fmt.Sprintf("[%d]%s", a.Elements.Max, a.Go)
	}
	return a.Go
}

// Wire returns the argument's name in the command.
func (a Arg) Wire() string {
	var b strings.Builder
	for i, r := range a.Name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(a.Name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Field returns the name of the argument in the command's Go struct.
func (a Arg) Field() string {
	var b strings.Builder
	for part := range strings.SplitSeq(a.Wire(), "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

var (
	handles = map[string]string{"CUcontext": "context", "CUstream": "stream", "CUevent": "event", "CUfunction": "function", "CUmodule": "module"}
	numbers = map[string]string{
		"int": "int32", "unsigned int": "uint32", "cuuint32_t": "uint32", "size_t": "uint64", "unsigned long long": "uint64",
		"cuuint64_t": "uint64", "CUdeviceptr": "uint64", "float": "float32", "void *": "uint64", "unsigned char": "uint8", "unsigned short": "uint16",
	}
	versionSuffix = regexp.MustCompile(`_v\d+$`)
)

// Commands returns the rows with "call". An error names the parameter that cannot
// be passed on: such a function must be written by hand.
func (t *Table) Commands() (all []Command, err error) {
	for _, f := range t.Functions {
		if f.Implementation != Call {
			continue
		}
		c := Command{Function: f, Name: versionSuffix.ReplaceAllString(strings.TrimPrefix(f.Symbol, "cu"), "")}
		for _, p := range f.Params {
			if err := c.add(t, p); err != nil {
				return nil, fmt.Errorf("functions.txt: %s: %w", f.Symbol, err)
			}
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("functions.txt: %s: %w", f.Symbol, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func (c *Command) add(t *Table, p Param) error {
	a := Arg{Param: p, Handle: handles[p.Type], Go: numbers[p.Type], Bytes: c.Touches[p.Name], Elements: c.Counts[p.Name]}
	to, is := strings.CutSuffix(p.Type, " *")
	in := strings.TrimPrefix(to, "const ")
	switch {
	case p.Type == "CUdeviceptr" || p.Type == "void *":
		if a.Bytes == 0 {
			return fmt.Errorf("%s is an address: touch=%s:BYTES is missing, the number of bytes that the call accesses", p.Name, p.Name)
		}
	case is && t.Layout(in) != nil:
		a.Type, a.Layout = in, t.Layout(in)
		return c.addStruct(a, in != to)
	case is && in != to && numbers[in] != "":
		if a.Elements.Max == 0 {
			return fmt.Errorf("%s is an array: count=%s:PARAMETER:MAX is missing, the number of its elements", p.Name, p.Name)
		}
		a.Type, a.Go = in, numbers[in]
	case is && numbers[to] != "":
		a.Type, a.Go = to, numbers[to]
		c.Results = append(c.Results, a)
		return nil
	case t.Kind(p.Type) == Enum:
		a.Go = "int32"
	case a.Handle == "" && (a.Go == "" || a.Go == "uint8" || a.Go == "uint16"):
		return fmt.Errorf("%s has type %q, which commands do not support", p.Name, p.Type)
	}
	c.Args = append(c.Args, a)
	return nil
}

// addStruct adds a parameter that points to a struct; constant means that the
// function only reads it.
func (c *Command) addStruct(a Arg, constant bool) error {
	tag := c.Tags[a.Name]
	for i := range c.Args {
		if c.Args[i].Name == tag && c.Args[i].Go == "int32" {
			copied := c.Args[i]
			a.Tag = &copied
		}
	}
	if a.Layout.Union && a.Tag == nil {
		return fmt.Errorf("%s is a union: by=%s:PARAMETER is missing, or PARAMETER is not an enum before it", a.Name, a.Name)
	}
	if constant || c.InOut[a.Name] {
		c.Args = append(c.Args, a)
	}
	if !constant {
		c.Outs = append(c.Outs, a)
	}
	return nil
}

// Record returns the size of the returned structs, in bytes.
func (c *Command) Record() (n int) {
	for _, o := range c.Outs {
		n += o.Layout.Wire()
	}
	return n
}

func (c *Command) check() error {
	switch {
	case len(c.Results) > 2:
		return fmt.Errorf("%d results, want at most 2: a completion slot has two values", len(c.Results))
	case c.Stream && (len(c.Results)+len(c.Outs) > 0 || len(c.Args) == 0 || c.Args[0].Handle != "stream"):
		return fmt.Errorf("a command with stream must have the stream as its first parameter and no result")
	case c.Stream && c.Soft == "":
		return fmt.Errorf("a command with stream must have soft=ERROR")
	case len(c.Outs) > 0 && c.Soft == "":
		return fmt.Errorf("a command that returns a struct must have soft=ERROR, the result of a device without the function")
	}
	for name, n := range c.Counts {
		if i := slices.IndexFunc(c.Args, func(a Arg) bool { return a.Name == n.By }); i < 0 || c.Args[i].Go != "uint32" && c.Args[i].Go != "int32" {
			return fmt.Errorf("count=%s: parameter %s is not a 32-bit number", name, n.By)
		}
	}
	return nil
}

// First returns the first handle; a command without one belongs to the current
// context.
func (c *Command) First() (first Arg, ok bool) {
	for _, a := range c.Args {
		if a.Handle != "" {
			return a, true
		}
	}
	return Arg{}, false
}

// ABI converts the command to gpu/abi's representation.
func (c *Command) ABI() abi.Command {
	out := abi.Command{Op: uint16(c.Op), Name: c.Name, Sync: !c.Stream, API: []string{c.Symbol}}
	if _, ok := c.First(); !ok {
		out.Args = append(out.Args, abi.Field{Name: "ctx", Kind: abi.U64, Doc: "handle of the current context"})
	}
	var short, structs []abi.Field
	words := 0
	for _, a := range c.Args {
		f := abi.Field{Name: a.Wire(), Kind: abi.U64, Doc: a.Type, Count: a.Elements.Max}
		switch {
		case a.Layout != nil:
			f.Kind, f.Count = abi.U8, a.Layout.Wire()
			structs = append(structs, f)
			continue
		case a.Go == "int32":
			f.Kind = abi.I32
		case a.Go == "uint32":
			f.Kind = abi.U32
		case a.Go == "float32":
			f.Kind = abi.F32
		}
		if f.Kind == abi.U64 {
			out.Args = append(out.Args, f)
		} else {
			short = append(short, f)
			words += max(1, f.Count)
		}
	}
	if len(c.Outs) > 0 {
		record := abi.Record("structs that come back")
		out.Args = append(out.Args, record[:2]...)
		short = append(short, record[2])
		words++
	}
	if words%2 == 1 {
		short = append(short, abi.Field{Name: "zero", Kind: abi.U32, Doc: "zero"})
	}
	out.Args = append(append(out.Args, short...), structs...)
	for i, r := range c.Results {
		*[]*string{&out.Value0, &out.Value1}[i] = r.Type + " " + r.Name
	}
	return out
}
