package amd64

import (
	"errors"
	"fmt"
	"unsafe"
)

// MaxLoad is the maximum number of bytes of code that one Load maps.
const MaxLoad = 64 << 20

// Code is a set of functions in executable memory. It is safe for concurrent use.
type Code struct {
	mapping []byte
	at      []int // offsets of the functions
}

// Function is one function of a Code. It is valid until the Code is closed.
type Function struct{ entry uintptr }

// Load maps functions that an Assembler has finished. The caller must call Close to
// unmap them.
func Load(functions ...[]byte) (*Code, error) {
	if !Available() {
		return nil, errors.New("generated code: this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
	c := &Code{}
	var all []byte
	for i, f := range functions {
		if len(f) == 0 {
			return nil, fmt.Errorf("load code: function %d of %d is empty", i, len(functions))
		}
		for len(all)%CodeAlign != 0 {
			all = append(all, 0xcc)
		}
		c.at = append(c.at, len(all))
		all = append(all, f...)
		if len(all) > MaxLoad {
			return nil, fmt.Errorf("load code: functions 0 to %d of %d have more than %d bytes", i, len(functions), MaxLoad)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("load code: no functions")
	}
	var err error
	c.mapping, err = mapCode(all)
	return c, err
}

// Function returns function i of the call of Load.
func (c *Code) Function(i int) Function {
	return Function{uintptr(unsafe.Pointer(&c.mapping[c.at[i]]))}
}

// Entry returns the code at an offset from the start of function i as a function.
func (c *Code) Entry(i, offset int) Function {
	return Function{uintptr(unsafe.Pointer(&c.mapping[c.at[i]+offset]))}
}

// Close unmaps the code. None of its functions may be running, or be called later.
func (c *Code) Close() error {
	m := c.mapping
	c.mapping = nil
	if m == nil {
		return nil
	}
	return unmapCode(m)
}

// Call executes the function on this goroutine and thread and returns the value in RAX.
// The context must be on the heap, where it is because it escapes here, or in a
// mapping. The package comment has the rules that the code must follow.
func (f Function) Call(context unsafe.Pointer) uint64 { return enter(f.entry, context) }
