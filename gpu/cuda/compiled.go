package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Cache keeps code that libcuda has compiled, for the program's next start. Its contents
// need not be trusted: a program may load any code. It is safe for concurrent use.
type Cache interface {
	Get(key [sha256.Size]byte) (code []byte, ok bool)
	Put(key [sha256.Size]byte, code []byte)
}

// keyVersion changes when the same objects and options are compiled differently here.
const keyVersion = 1

// CUdevice_attribute, from cuda.h.
const (
	attributeCapabilityMajor = 75
	attributeCapabilityMinor = 76
)

// noOptLevel in the options of an image that is compiled already means that none is passed.
const noOptLevel = 5

// compiledSource returns the PTX that libcuda would compile of an image, if its code is to
// be kept.
func (c *context) compiledSource(image []byte) (source []byte, ok bool) {
	switch {
	case c.d.cache == nil || fatbin.IsELF(image):
		return nil, false
	case fatbin.Is(image):
		a := c.d.info.Attributes
		return fatbin.JIT(image, uint32(a[attributeCapabilityMajor]), uint32(a[attributeCapabilityMinor]))
	}
	return bytes.TrimRight(image, "\x00"), true
}

// loadPTX returns a function that loads an image by way of the linker, which compiles the
// source in it, and whose code can be kept. What the linker does not accept is loaded
// directly: that gives the error that a program expects.
func (c *context) loadPTX(source []byte) func(m *out[uintptr], image []byte, o worker.ModuleOptions, info *abi.ModuleInfo) error {
	objects := []abi.LinkObject{{Type: jitInputPTX, Name: "module", Image: source}}
	return func(m *out[uintptr], image []byte, o worker.ModuleOptions, info *abi.ModuleInfo) error {
		if err := c.loadCompiled(m, objects, o, info); err == nil {
			return nil
		}
		*info = abi.ModuleInfo{}
		return c.loadImage(m, image, o, info)
	}
}

// loadCompiled compiles and links objects and loads the result as a module, or loads what
// the cache has of them; then the info has no log of the compiler.
func (c *context) loadCompiled(m *out[uintptr], objects []abi.LinkObject, o worker.ModuleOptions, info *abi.ModuleInfo) error {
	var key [sha256.Size]byte
	if c.d.cache != nil {
		key = c.d.codeKey(objects, o)
		code, ok := c.d.cache.Get(key)
		if ok && c.loadImage(m, code, worker.ModuleOptions{OptLevel: noOptLevel}, &abi.ModuleInfo{}) == nil {
			return nil
		}
	}
	code, err := c.compile(objects, o, info)
	if err != nil {
		return err
	}
	if err := c.loadImage(m, code, worker.ModuleOptions{OptLevel: noOptLevel}, &abi.ModuleInfo{}); err != nil {
		return err
	}
	if c.d.cache != nil {
		c.d.cache.Put(key, code)
	}
	return nil
}

// codeKey returns the sum of all that compiled code depends on: the driver, the kind of
// card, the options, and the objects with their names, which are in the code.
func (d *driver) codeKey(objects []abi.LinkObject, o worker.ModuleOptions) (key [sha256.Size]byte) {
	h := sha256.New()
	major, minor := d.info.Attributes[attributeCapabilityMajor], d.info.Attributes[attributeCapabilityMinor]
	for _, n := range []uint64{keyVersion, uint64(d.info.CUDAVersion), uint64(major), uint64(minor), uint64(o.OptLevel), uint64(o.MaxRegisters), uint64(len(objects))} {
		_ = binary.Write(h, binary.LittleEndian, n)
	}
	add(h, []byte(d.info.DriverVersion))
	add(h, []byte(d.info.Name))
	for _, object := range objects {
		_ = binary.Write(h, binary.LittleEndian, uint64(object.Type))
		add(h, []byte(object.Name))
		add(h, object.Image)
	}
	h.Sum(key[:0])
	return key
}

// add adds bytes to a sum so that their end is known.
func add(h hash.Hash, b []byte) {
	_ = binary.Write(h, binary.LittleEndian, uint64(len(b)))
	_, _ = h.Write(b)
}
