// Package libdevice implements the mathematical functions that CUDA C++ compilers call:
// functions with the names and types of libdevice (NVIDIA's "libdevice User's Guide"),
// computed by the host. A device that has them can execute programs whose compiler had
// no such library.
//
// Functions of float are computed with float64 and rounded once. Those of double are
// Go's where these have an error of at most a unit in the last place, and else sums of
// two numbers (double.go). A function that is an instruction of PTX is that
// instruction's operation (instructions.go). docs/soft-math.md has the errors, measured
// with math/big.
package libdevice

import (
	"maps"
	"math"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Prefix is the prefix of the functions' names.
const Prefix = "__nv_"

// Function is a function of libdevice. Its parameters are the values that its
// operations take, followed by a pointer for each of Outputs.
type Function struct {
	Result  *ops.Operation // the returned value, or nil
	Outputs []ops.Operation
}

// Operations returns the operations of the result and the outputs.
func (f Function) Operations() []ops.Operation {
	if f.Result == nil {
		return f.Outputs
	}
	return append([]ops.Operation{*f.Result}, f.Outputs...)
}

// Find returns the function with a name that includes Prefix.
func Find(name string) (f Function, ok bool) {
	short, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return f, false
	}
	f, ok = functions[short]
	return f, ok
}

// All returns a copy of the table of functions, by their names without Prefix.
func All() map[string]Function { return maps.Clone(functions) }

var functions = table()

func table() map[string]Function {
	all := map[string]Function{}
	add := func(name string, o ops.Operation) { all[name] = Function{Result: &o} }
	for name, f := range computed() {
		add(name, ops.Operation{Name: Prefix + name, Loop: loop(f)})
	}
	for name, instruction := range instructions() { // an instruction takes precedence
		add(name, operation(instruction))
	}
	for name, list := range withPointers {
		var f Function
		for i, g := range list {
			switch {
			case g == nil: // no returned value
			case i == 0:
				f.Result = &ops.Operation{Name: Prefix + name, Loop: loop(g)}
			default:
				f.Outputs = append(f.Outputs, ops.Operation{Name: Prefix + name + string(rune('0'+i)), Loop: loop(g)})
			}
		}
		all[name] = f
	}
	return all
}

// withPointers has functions with more than one result: the returned one, or nil, and
// those that are stored to the addresses of pointers.
var withPointers = map[string][]any{
	"sincos":       {nil, sin, cos},
	"sincosf":      {nil, single(sin), single(cos)},
	"sincospi":     {nil, sinpi, cospi},
	"sincospif":    {nil, single(sinpi), single(cospi)},
	"fast_sincosf": {nil, single(sin), single(cos)},
	"frexp":        {frexpFraction, frexpExponent},
	"frexpf":       {single(frexpFraction), func(x float32) int32 { return frexpExponent(float64(x)) }},
	"modf":         {modfFraction, math.Trunc},
	"modff":        {single(modfFraction), single(math.Trunc)},
	"remquo":       {math.Remainder, quotient},
	"remquof":      {single2(math.Remainder), func(x, y float32) int32 { return quotient(float64(x), float64(y)) }},
}

// single returns a function of float that is computed with float64 and rounded.
func single(f func(float64) float64) func(float32) float32 {
	return func(x float32) float32 { return float32(f(float64(x))) }
}

func single2(f func(x, y float64) float64) func(x, y float32) float32 {
	return func(x, y float32) float32 { return float32(f(float64(x), float64(y))) }
}
