package cudaapi

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Command is a row that says "call".
type Command struct {
	*Function
	Name    string // of the command, and of the method of worker.Context
	Args    []Arg  // in the order of the parameters
	Results []Arg  // what comes back: at most two
}

// Arg is an argument or a result of a command.
type Arg struct {
	Param
	Handle string // kind of the object: "context", "stream", "event", "function", "module"; "" for a number
	Go     string // type of a number
	Bytes  int    // of an address: how many bytes from it on the command touches
}

// Wire is the argument's name in the command.
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

// Field is the name of the argument in the command's Go struct.
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
		"cuuint64_t": "uint64", "CUdeviceptr": "uint64", "float": "float32",
	}
	versionSuffix = regexp.MustCompile(`_v\d+$`)
)

// Commands are the rows that say "call". An error says which parameter cannot
// be passed on: such a function is written by hand.
func (t *Table) Commands() (all []Command, err error) {
	for _, f := range t.Functions {
		if f.How != Call {
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
	a := Arg{Param: p, Handle: handles[p.Type], Go: numbers[p.Type], Bytes: c.Touches[p.Name]}
	to, is := strings.CutSuffix(p.Type, " *")
	switch {
	case is && numbers[to] != "":
		a.Type, a.Go = to, numbers[to]
		c.Results = append(c.Results, a)
		return nil
	case t.Kind(p.Type) == Enum:
		a.Go = "int32"
	case a.Handle == "" && a.Go == "":
		return fmt.Errorf("%s is a %q, which no command carries", p.Name, p.Type)
	case p.Type == "CUdeviceptr" && a.Bytes == 0:
		return fmt.Errorf("%s is an address: say how many bytes the call touches (touch=%s:BYTES)", p.Name, p.Name)
	}
	c.Args = append(c.Args, a)
	return nil
}

func (c *Command) check() error {
	switch {
	case len(c.Results) > 2:
		return fmt.Errorf("%d results; a completion slot holds two", len(c.Results))
	case c.Stream && (len(c.Results) > 0 || len(c.Args) == 0 || c.Args[0].Handle != "stream"):
		return fmt.Errorf("what is done in a stream's order has the stream first and no result")
	case c.Stream && c.Soft == "":
		return fmt.Errorf("what is done in a stream's order needs soft=ERROR")
	}
	return nil
}

// First is the first handle; without one the command is the current context's.
func (c *Command) First() (first Arg, ok bool) {
	for _, a := range c.Args {
		if a.Handle != "" {
			return a, true
		}
	}
	return Arg{}, false
}

// ABI is the command in gpu/abi's terms.
func (c *Command) ABI() abi.Command {
	out := abi.Command{Op: uint16(c.Op), Name: c.Name, Sync: !c.Stream, API: []string{c.Symbol}}
	if _, ok := c.First(); !ok {
		out.Args = append(out.Args, abi.Field{Name: "ctx", Kind: abi.U64, Doc: "handle of the current context"})
	}
	var short []abi.Field
	for _, a := range c.Args {
		f := abi.Field{Name: a.Wire(), Kind: abi.U64, Doc: a.Type}
		switch a.Go {
		case "int32":
			f.Kind = abi.I32
		case "uint32":
			f.Kind = abi.U32
		case "float32":
			f.Kind = abi.F32
		}
		if f.Kind == abi.U64 {
			out.Args = append(out.Args, f)
		} else {
			short = append(short, f)
		}
	}
	if len(short)%2 == 1 {
		short = append(short, abi.Field{Name: "zero", Kind: abi.U32, Doc: "zero"})
	}
	out.Args = append(out.Args, short...)
	for i, r := range c.Results {
		*[]*string{&out.Value0, &out.Value1}[i] = r.Type + " " + r.Name
	}
	return out
}
