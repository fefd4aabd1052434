package compile

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Check compiles an image as a context that loads it would, and returns its kernels,
// those that cannot be executed with an error. It returns an error if the module itself
// is refused, with the kernels if that is because of one of them. The programs of a large module are not kept, as a context would only have
// those that it uses.
func (c Capability) Check(image []byte) ([]Kernel, error) {
	m, err := c.ParseLazy(image)
	if err != nil {
		return nil, err
	}
	if err := m.Link(ir.NewSpaces(checkedWindow), &checked{next: checkedWindow.Base}); err != nil {
		return nil, err
	}
	if !m.Lazy() {
		list := m.Kernels()
		return list, Mistyped(list)
	}
	text, err := m.lazy.source.read()
	if err != nil {
		return nil, err
	}
	m.lazy.source = source{text: text} // so that it is not unpacked for each kernel
	list := m.Entries()
	for i := range list {
		m.Compile(&list[i])
		list[i].Program, m.expanded = nil, 0
	}
	return list, nil
}

// checked is the Memory of a module that is never executed: its variables have
// addresses, and share their bytes.
type checked struct {
	next, code uint64
	size       map[uint64]uint64
	scratch    []byte
}

// checkedWindow is the address window of programs in an empty process.
var checkedWindow = abi.Windows()[0]

// Place implements Memory.
func (c *checked) Place(_ string, size uint64) (uint64, error) {
	at := c.next
	c.next += (size + 255) &^ 255
	if c.size == nil {
		c.size = map[uint64]uint64{}
	}
	c.size[at] = size
	return at, nil
}

// PlaceManaged implements Memory.
func (c *checked) PlaceManaged(name string, size uint64) (uint64, error) {
	return c.Place(name, size)
}

// Bytes implements Memory.
func (c *checked) Bytes(address uint64) []byte {
	n := c.size[address]
	if uint64(len(c.scratch)) < n {
		c.scratch = make([]byte, n)
	}
	return c.scratch[:n]
}

// Code implements Memory.
func (c *checked) Code() uint64 {
	c.code += 16
	return c.code
}
