package null

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// module is what is known about a loaded image.
type module struct {
	c    *Context
	vars []uint64 // addresses to free
}

// function is one kernel, which is never executed.
type function struct {
	m          *module
	maxThreads uint32
	paramBytes uint32
	maxDynamic atomic.Uint32 // permitted bytes of dynamic shared memory
}

// outline is what an image declares.
type outline struct {
	arch    int
	kernels []kernel
	vars    []variable
}

type kernel struct {
	name       string
	params     []abi.ParamInfo
	maxThreads uint32 // 0: not specified
}

type variable struct {
	name string
	size uint64
}

// ModuleLoad implements worker.Context.
func (c *Context) ModuleLoad(image []byte, _ worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	o, err := read(image)
	if err != nil {
		info.ErrorLog = err.Error()
		return nil, nil, info, err
	}
	m := &module{c: c}
	for _, v := range o.vars {
		at, err := c.MemAlloc(max(v.size, 1))
		if err != nil {
			m.free()
			return nil, nil, abi.ModuleInfo{ErrorLog: fmt.Sprintf("allocate variable %s of %d bytes: %v", v.name, v.size, err)}, err
		}
		m.vars = append(m.vars, at)
		info.Globals = append(info.Globals, abi.GlobalInfo{Name: v.name, Address: at, Size: v.size})
	}
	list := make([]worker.Function, 0, len(o.kernels))
	for _, k := range o.kernels {
		f := &function{m: m, maxThreads: maxThreads}
		if k.maxThreads > 0 && k.maxThreads < maxThreads {
			f.maxThreads = k.maxThreads
		}
		for _, p := range k.params {
			f.paramBytes = max(f.paramBytes, p.Offset+p.Size)
		}
		f.maxDynamic.Store(maxSharedBytes)
		list = append(list, f)
		info.Functions = append(info.Functions, abi.FunctionInfo{
			Name: k.name, Params: k.params,
			Attributes: [abi.FunctionAttributes]int32{
				int32(f.maxThreads), 0, 0, 0, 1, int32(o.arch), capability, 0, maxSharedBytes, -1,
			},
		})
	}
	info.InfoLog = fmt.Sprintf("null device: %d kernels, none of which will run", len(list))
	c.mu.Lock()
	err = c.usable()
	if err == nil {
		c.modules[m] = true
	}
	c.mu.Unlock()
	if err != nil {
		m.free()
		return nil, nil, abi.ModuleInfo{}, err
	}
	return m, list, info, nil
}

// read returns the outline of an image. Of a fatbin's images, which are compiled
// from one source, the first that can be read is used, PTX before machine code.
func read(image []byte) (*outline, error) {
	switch {
	case abi.IsLinkImage(image):
		return readLinked(image)
	case fatbin.IsELF(image):
		return readCubin(image)
	case fatbin.Is(image):
		return readFatbin(image)
	}
	return readPTX(string(bytes.TrimRight(image, "\x00")))
}

func readFatbin(image []byte) (*outline, error) {
	entries, err := fatbin.Entries(image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
	}
	first := fmt.Errorf("%w: the fatbin has no PTX and no machine code", abi.ErrNoBinaryForGPU)
	failed := false
	for _, kind := range []fatbin.Kind{fatbin.PTX, fatbin.ELF} {
		for _, e := range entries {
			if e.Kind != kind {
				continue
			}
			o, err := readEntry(e)
			if err == nil {
				return o, nil
			}
			if !failed {
				first, failed = err, true
			}
		}
	}
	return nil, first
}

func readEntry(e fatbin.Entry) (*outline, error) {
	b, err := e.Image()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
	case e.Kind == fatbin.ELF:
		return readCubin(b)
	}
	return readPTX(string(b))
}

func readCubin(image []byte) (*outline, error) {
	c, err := fatbin.ReadCubin(image)
	switch {
	case errors.Is(err, fatbin.ErrForeign):
		return nil, fmt.Errorf("%w: %w", abi.ErrNoBinaryForGPU, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
	}
	o := &outline{arch: c.Arch}
	for _, k := range c.Kernels {
		found := kernel{name: k.Name}
		for _, p := range k.Params {
			found.params = append(found.params, abi.ParamInfo{Offset: p.Offset, Size: p.Size})
		}
		o.kernels = append(o.kernels, found)
	}
	for _, v := range c.Vars {
		o.vars = append(o.vars, variable{v.Name, v.Size})
	}
	return o, nil
}

// readPTX returns the outline that PTX declares.
func readPTX(src string) (*outline, error) {
	mod, err := parsePTX(src)
	if err != nil {
		return nil, err
	}
	return outlineOf(mod)
}

func parsePTX(src string) (*ptx.Module, error) {
	mod, err := ptx.Outline(src)
	if err != nil {
		return nil, fmt.Errorf("%w: ptx: %w", abi.ErrInvalidPTX, err)
	}
	if mod.Arch == 0 {
		return nil, fmt.Errorf("%w: ptx: no .target directive with an architecture, such as sm_70", abi.ErrInvalidPTX)
	}
	return mod, nil
}

func outlineOf(mod *ptx.Module) (*outline, error) {
	o := &outline{arch: mod.Arch}
	for _, v := range mod.Vars {
		switch {
		case v.Space != ptx.Global && v.Space != ptx.Const:
		case v.Extern:
			return nil, fmt.Errorf("%w: ptx: line %d: unresolved extern variable %s", abi.ErrInvalidPTX, v.Line, v.Name)
		case v.Managed:
			return nil, fmt.Errorf("%w: ptx: line %d: managed variable %s is not supported on this device", abi.ErrInvalidPTX, v.Line, v.Name)
		default:
			o.vars = append(o.vars, variable{v.Name, v.Size})
		}
	}
	for _, f := range mod.Funcs {
		if !f.Entry || f.Extern {
			continue
		}
		k := kernel{name: f.Name, maxThreads: f.MaxTID[0] * f.MaxTID[1] * f.MaxTID[2]}
		for _, v := range f.Params {
			k.params = append(k.params, abi.ParamInfo{Offset: v.Offset, Size: uint32(v.Size)})
		}
		o.kernels = append(o.kernels, k)
	}
	return o, nil
}

// free frees the variables.
func (m *module) free() {
	for _, at := range m.vars {
		_ = m.c.d.mem.free(m.c, at) // fails only if the context was destroyed
	}
	m.vars = nil
}

// ModuleUnload implements worker.Context.
func (c *Context) ModuleUnload(mod worker.Module) error {
	m, ok := mod.(*module)
	c.mu.Lock()
	if !ok || m == nil || !c.modules[m] {
		c.mu.Unlock()
		return abi.ErrInvalidHandle
	}
	delete(c.modules, m)
	c.mu.Unlock()
	m.free()
	return nil
}

// CUfunction_attribute 8 and 9.
const (
	attrMaxDynamicShared = 8
	attrSharedCarveout   = 9
)

// FuncSetAttribute implements worker.Context.
func (c *Context) FuncSetAttribute(fn worker.Function, attribute, value int32) error {
	f, ok := fn.(*function)
	if !ok || f == nil || f.m.c != c {
		return abi.ErrInvalidHandle
	}
	switch attribute {
	case attrMaxDynamicShared:
		if value < 0 || value > maxOptInBytes {
			return abi.ErrInvalidValue
		}
		f.maxDynamic.Store(uint32(value))
	case attrSharedCarveout:
	default:
		return abi.ErrInvalidValue
	}
	return nil
}

// OccupancyMaxActiveBlocksPerMultiprocessor implements worker.Context.
func (c *Context) OccupancyMaxActiveBlocksPerMultiprocessor(fn worker.Function, blockSize int32, dynamicShared uint64) (int32, error) {
	f, ok := fn.(*function)
	if !ok || f == nil || f.m.c != c {
		return 0, abi.ErrInvalidHandle
	}
	if blockSize <= 0 || uint32(blockSize) > f.maxThreads {
		return 0, abi.ErrInvalidValue
	}
	n := min(maxResidentThreads/((uint32(blockSize)+warpSize-1)&^(warpSize-1)), maxResidentBlocks)
	if dynamicShared > 0 {
		n = uint32(min(uint64(n), maxOptInBytes/dynamicShared))
	}
	return int32(n), nil
}
