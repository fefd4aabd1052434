package amd64

import (
	"errors"
	"fmt"
	"unsafe"
)

// MaxLoad is the most bytes of code that one Load maps.
const MaxLoad = 64 << 20

// Code is functions in executable memory. It can be called by any number of
// goroutines at once.
type Code struct {
	mapping []byte
	at      []int // of the functions
}

// Function is one function of a Code. It is valid until the Code is closed.
type Function struct{ entry uintptr }

// Load maps functions that an Assembler has finished. The memory counts as the
// process's until Close.
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

// Function returns the function of that number in the call of Load.
func (c *Code) Function(i int) Function {
	return Function{uintptr(unsafe.Pointer(&c.mapping[c.at[i]]))}
}

// Entry returns what begins so many bytes behind the start of the function of that
// number.
func (c *Code) Entry(i, offset int) Function {
	return Function{uintptr(unsafe.Pointer(&c.mapping[c.at[i]+offset]))}
}

// Close unmaps the code. None of its functions may be running, or be called again.
func (c *Code) Close() error {
	m := c.mapping
	c.mapping = nil
	if m == nil {
		return nil
	}
	return unmapCode(m)
}

// Call runs the function on this goroutine and thread and returns what it left in
// RAX. The context must be on the heap, which it is because it escapes here, or in
// a mapping. The package comment has what the code must obey.
func (f Function) Call(context unsafe.Pointer) uint64 { return enter(f.entry, context) }
