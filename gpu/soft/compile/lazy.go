package compile

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// lazyBytes is the size of PTX from which on a module's kernels are compiled at their
// first use. Libraries have modules of up to 32 MB, of which a program uses a few
// kernels; a smaller module is compiled when it is loaded, and its log has the refused
// kernels.
const lazyBytes = 256 << 10

// lazy is the state of a module whose functions are read for each kernel that is
// compiled.
type lazy struct {
	module  *ptx.Lazy
	source  source
	reading *ptx.Reading // nil if no kernel is being compiled
	heap    bool         // a function may use malloc
}

// source is the PTX of a module, compressed if it was in the image.
type source struct {
	text   string
	packed *fatbin.Entry // of a fatbin; nil: text is valid
}

var errNoPTX = fmt.Errorf("%w: the fatbin has no PTX that the device can run: build with nvcc -gencode arch=compute_61,code=compute_61", abi.ErrNoBinaryForGPU)

func (s source) read() (string, error) {
	if s.packed == nil {
		return s.text, nil
	}
	text, err := s.packed.Image()
	if err != nil {
		return "", fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
	}
	if len(text) == 0 {
		return "", errNoPTX
	}
	return textOf(text), nil
}

// ParseLazy is Parse, except that the kernels of a large module are not compiled: Lazy
// then reports true, and Compile reports the errors in them. A module of several images
// is compiled completely.
func (c Capability) ParseLazy(image []byte) (*Module, error) {
	if abi.IsLinkImage(image) {
		return c.Parse(image)
	}
	s, err := c.sourceOf(image)
	if err != nil {
		return nil, err
	}
	text, err := s.read()
	if err != nil {
		return nil, err
	}
	if len(text) < lazyBytes {
		return c.Parse(image)
	}
	z, err := ptx.ParseLazy(text)
	if err != nil {
		return nil, err
	}
	if err := hasTarget(z.Module); err != nil {
		return nil, err
	}
	if s.packed != nil { // release the machine code in the same fatbin
		s.packed = s.packed.Clone()
	}
	l := newModule(z.Module, 0)
	l.lazy = &lazy{module: z, source: s, heap: usesHeap(z.Module, text)}
	return l, nil
}

// usesHeap reports whether a function may use the memory of malloc.
func usesHeap(m *ptx.Module, text string) bool {
	for _, f := range m.Funcs {
		// Declared once and named again.
		if f.Builtin() && heapUsers[f.Name] && strings.Count(text, f.Name) > 1 {
			return true
		}
	}
	return false
}

// Lazy reports whether the module's kernels are compiled one by one.
func (l *Module) Lazy() bool { return l.lazy != nil }

// open prepares a module's functions for reading.
func (z *lazy) open() error {
	text, err := z.source.read()
	if err != nil {
		return err
	}
	z.reading = z.module.Open(text)
	return nil
}

// read reads a function's body, unless it has been read.
func (z *lazy) read(f *ptx.Func) error {
	if z == nil {
		return nil
	}
	return z.reading.Read(f)
}

// close drops the bodies that have been read.
func (z *lazy) close() {
	z.reading.Close()
	z.reading = nil
}
