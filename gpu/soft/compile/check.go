package compile

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Check compiles an image as a context would that loads it, and returns its
// kernels: which of them a soft GPU runs, and why not the others. The error is
// why the module itself is refused. Programs of a large module are not kept: a
// context would have those that it uses.
func (c Capability) Check(image []byte) ([]Kernel, error) {
	m, err := c.ParseLazy(image)
	if err != nil {
		return nil, err
	}
	if err := m.Link(ir.NewSpaces(checkedWindow), &checked{next: checkedWindow.Base}); err != nil {
		return nil, err
	}
	if !m.Lazy() {
		return m.Kernels(), nil
	}
	text, err := m.lazy.source.read()
	if err != nil {
		return nil, err
	}
	m.lazy.source = source{text: text} // not to unpack it for each
	list := m.Entries()
	for i := range list {
		m.Compile(&list[i])
		list[i].Program, m.expanded = nil, 0
	}
	return list, nil
}

// checked is the Memory of a module that is never run: its variables have
// addresses, and share their bytes.
type checked struct {
	next, code uint64
	size       map[uint64]uint64
	scratch    []byte
}

// checkedWindow is where programs of an empty process have theirs.
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
