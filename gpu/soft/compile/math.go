package compile

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/libdevice"
)

// callMath compiles a call of a function of libdevice to its operations. Their results
// are returned, or stored to the addresses of pointer arguments.
func (c *compiler) callMath(f libdevice.Function, s *site) ([]ir.Op, error) {
	operations := f.Operations()
	_, values, _ := ir.ShapeOf(operations[0].Loop)
	params := slices.Clone(values)
	for range f.Outputs {
		params = append(params, ir.Class64)
	}
	list, args, err := c.arguments(s, params)
	if err != nil {
		return nil, err
	}
	results := make([]ir.Ref, len(operations))
	for i, o := range operations {
		d, _, _ := ir.ShapeOf(o.Loop)
		results[i] = c.fresh(d)
		list = append(list, &ir.Arith{F: o, D: results[i], S: args[:len(values)]})
	}
	var returned []ir.Ref
	if f.Result != nil {
		returned, results = results[:1], results[1:]
	}
	for i, r := range results {
		to := ir.Access{Base: args[len(values)+i], Size: wordSize(r.Class), N: 1, Mask: ^uint64(0), Local: c.mod.spaces.Local}
		list = append(list, &ir.Store{Access: to, S: []ir.Ref{r}})
	}
	return c.passResults(list, s, returned)
}

// arguments copies the arguments of a call to registers of these classes.
func (c *compiler) arguments(s *site, classes []ir.Class) (list []ir.Op, args []ir.Ref, err error) {
	sizes := make([]uint64, len(classes))
	for i, cl := range classes {
		sizes[i] = wordSize(cl)
	}
	words, err := c.words(s.args, sizes)
	if err != nil {
		return nil, nil, err
	}
	for i, w := range words {
		r := w.Reg
		if r == ir.None {
			r = c.fresh(classes[i])
			list = append(list, &ir.CopyWord{To: ir.Word{Reg: r}, From: w})
		}
		args = append(args, r)
	}
	return list, args, nil
}

// passResults copies the results of a call to the caller's variables.
func (c *compiler) passResults(list []ir.Op, s *site, results []ir.Ref) ([]ir.Op, error) {
	sizes := make([]uint64, len(results))
	for i, r := range results {
		sizes[i] = wordSize(r.Class)
	}
	words, err := c.words(s.rets, sizes)
	if err != nil {
		return nil, err
	}
	for i, w := range words {
		list = append(list, copyWord(w, ir.Word{Reg: results[i]}, sizes[i]))
	}
	return list, nil
}

func wordSize(cl ir.Class) uint64 {
	if cl == ir.Class64 {
		return 8
	}
	return 4
}
