package device

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// module is a loaded PTX module.
type module struct {
	c     *Context
	funcs []*function
	code  map[uint64]*function // by the addresses by which kernels launch them
	vars  []uint64             // device addresses to free
	heap  *exec.Heap           // for malloc in kernels; nil if none uses it

	references []compile.Reference
	bound      []*exec.Texture // textures bound to references; nil if none has been bound yet. Replaced, never changed, under Context.mu
}

// function is one kernel.
type function struct {
	m    *module
	load func() // compiles the kernel, once; the fields below are valid after it
	info abi.FunctionInfo

	p          *ir.Program          // nil if refused has an error
	ready      func() *exec.Program // returns p as it is executed, created at the first launch
	refused    error
	registers  uint32 // NUM_REGS
	maxDynamic uint32 // limit of dynamic shared memory in bytes, under Context.mu
}

// ModuleLoad implements worker.Context.
func (c *Context) ModuleLoad(image []byte, o worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	parse := c.d.o.Capability.Parse
	if o.Lazy {
		parse = c.d.o.Capability.ParseLazy
	}
	parsed, err := parse(image)
	var m *module
	if err == nil {
		m, err = c.load(parsed, o, &info)
	}
	if err != nil {
		var pe *ptx.Error
		if errors.As(err, &pe) {
			info.ErrorLog = "ptx: " + err.Error()
			err = fmt.Errorf("%w: %w", abi.ErrInvalidPTX, err)
		} else {
			info.ErrorLog = err.Error()
		}
		return nil, nil, info, err
	}
	var list []worker.Function
	for _, f := range m.funcs {
		list = append(list, f)
	}
	return m, list, info, nil
}

func (c *Context) load(parsed *compile.Module, o worker.ModuleOptions, info *abi.ModuleInfo) (*module, error) {
	m := &module{c: c, code: map[uint64]*function{}}
	if list := parsed.Managed(); len(list) > 0 && o.Managed == nil {
		info.Globals = list
		return nil, fmt.Errorf("%w: module with %d managed variables, such as %s: the guest library has given no memory for them", abi.ErrNotSupported, len(list), list[0].Name)
	}
	if err := c.link(m, parsed, info, o.Managed); err != nil {
		return nil, err
	}
	err := m.enter(parsed, o, info) // without mu, as it takes long
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = c.usableLocked()
	}
	if err != nil {
		c.freeVars(m)
		return nil, err
	}
	c.modules[m] = true
	return m, nil
}

// enter adds the kernels of a module, and compiles them unless they are to be compiled
// at their first use. It returns an error if the module is refused for one of them.
func (m *module) enter(parsed *compile.Module, o worker.ModuleOptions, info *abi.ModuleInfo) error {
	var refused refusals
	var turn sync.Mutex // only one kernel of the module is compiled at a time
	for _, k := range parsed.Entries() {
		fn := &function{m: m, info: abi.FunctionInfo{Name: k.Name, Params: k.Params}}
		if at := parsed.Code(&k); at != 0 {
			m.code[at] = fn
		}
		fn.load = sync.OnceFunc(func() {
			turn.Lock()
			defer turn.Unlock()
			parsed.Compile(&k)
			fn.compiled(&k, parsed, o)
		})
		if !parsed.Lazy() {
			if fn.load(); k.Err != nil {
				if err := compile.Mistyped([]compile.Kernel{k}); err != nil {
					return err //nolint:wrapcheck // it names the kernel
				}
				refused.add(k)
			}
		}
		m.funcs = append(m.funcs, fn)
		info.Functions = append(info.Functions, fn.info)
	}
	info.InfoLog = fmt.Sprintf("soft GPU: %d kernels compiled", len(m.funcs)-refused.count)
	if parsed.Lazy() {
		info.InfoLog = fmt.Sprintf("soft GPU: %d kernels, each compiled when it is first used", len(m.funcs))
	}
	info.ErrorLog = refused.log.String()
	return nil
}

// compiled stores the result of the compilation of a kernel.
func (f *function) compiled(k *compile.Kernel, of *compile.Module, o worker.ModuleOptions) {
	if k.Err != nil {
		f.refused = fmt.Errorf("%w: kernel %s: %w", abi.ErrNoBinaryForGPU, k.Name, k.Err)
		f.info.Refused = k.Err.Error()
		return
	}
	f.p = k.Program
	f.ready = sync.OnceValue(func() *exec.Program { return exec.NewChecked(f.p, f.m.c.d.o.Check) })
	f.registers = registers(f.p, o.MaxRegisters, of.MaxRegisters())
	f.maxDynamic = compile.MaxSharedBytes - min(f.p.SharedBytes, compile.MaxSharedBytes)
	f.info.Attributes = f.attributes(of)
}

// FunctionInfo implements worker.LazyLoader.
func (c *Context) FunctionInfo(fn worker.Function) (abi.FunctionInfo, error) {
	f, err := c.function(fn)
	if f == nil {
		return abi.FunctionInfo{}, err
	}
	return f.info, nil
}

// refusals is the log of a module's kernels that the device cannot run.
type refusals struct {
	count int
	log   strings.Builder
}

// maxRefusals is the maximum number of kernels in the log; each refused kernel also has
// its error in its FunctionInfo.
const maxRefusals = 64

func (r *refusals) add(k compile.Kernel) {
	switch r.count++; {
	case r.count <= maxRefusals:
		fmt.Fprintf(&r.log, "ptx: kernel %s cannot run on this device: %v\n", k.Name, k.Err)
	case r.count == maxRefusals+1:
		r.log.WriteString("ptx: more kernels cannot run on this device\n")
	}
}

// link assigns addresses and initial values to the symbols of a module.
func (c *Context) link(m *module, parsed *compile.Module, info *abi.ModuleInfo, managed *worker.ManagedMemory) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usableLocked(); err != nil {
		return err
	}
	err := parsed.Link(c.spaces, &symbols{m: m, info: info, managed: managed})
	if err != nil {
		c.freeVars(m)
		return fmt.Errorf("link the module: %w", err)
	}
	m.references = parsed.References()
	if at := parsed.Heap(); at != 0 {
		m.heap = exec.NewHeap(at, compile.HeapBytes)
	}
	return nil
}

// usableLocked returns why the context accepts no modules, or nil. The caller must hold
// mu.
func (c *Context) usableLocked() error {
	if c.poisoned != nil {
		return c.poisoned
	}
	if c.closed {
		return abi.ErrInvalidContext
	}
	return nil
}

// symbols implements compile.Memory for a module that is being loaded, with Context.mu
// held.
type symbols struct {
	m       *module
	info    *abi.ModuleInfo
	managed *worker.ManagedMemory // nil if there are no managed variables
	next    uint64                // offset of the next managed variable
}

// Place implements compile.Memory.
func (s *symbols) Place(name string, size uint64) (uint64, error) {
	addr, err := s.m.c.allocLocked(max(size, 1))
	if err != nil {
		return 0, err
	}
	s.m.vars = append(s.m.vars, addr)
	s.info.Globals = append(s.info.Globals, abi.GlobalInfo{Name: name, Address: addr, Size: size})
	return addr, nil
}

// PlaceManaged implements compile.Memory.
func (s *symbols) PlaceManaged(name string, size uint64) (uint64, error) {
	at := s.next
	if room := uint64(len(s.managed.Bytes)); at > room || size > room-at {
		return 0, fmt.Errorf("%w: managed variable %s: %d bytes at offset %d, want them in the %d bytes that the guest library has given", abi.ErrInvalidValue, name, size, at, room)
	}
	s.next = (at + size + abi.ManagedAlign - 1) &^ (abi.ManagedAlign - 1)
	s.info.Globals = append(s.info.Globals, abi.GlobalInfo{Name: name, Address: s.managed.Base + at, Size: size})
	return s.managed.Base + at, nil
}

// Bytes implements compile.Memory. Managed variables that have been used keep their
// values.
func (s *symbols) Bytes(addr uint64) []byte {
	m := s.managed
	if m == nil || addr < m.Base || addr-m.Base >= uint64(len(m.Bytes)) {
		return s.m.c.backing(addr)
	}
	if !m.Fresh {
		return nil
	}
	return m.Bytes[addr-m.Base:]
}

// codeStep is the distance between the addresses of two functions. They are below all
// address windows, so they differ from all addresses of memory.
const codeStep = 16

// Code implements compile.Memory. The addresses are unique in the context.
func (s *symbols) Code() uint64 {
	s.m.c.lastCode += codeStep
	return s.m.c.lastCode
}

// attributes returns the CUfunction_attribute values 0 to 9.
func (f *function) attributes(of *compile.Module) [abi.FunctionAttributes]int32 {
	// PTX_VERSION is the architecture that the PTX is for, not the version of the
	// language: libraries determine by it which of their variants was compiled.
	return [abi.FunctionAttributes]int32{
		int32(f.p.MaxThreads), int32(f.p.SharedBytes), of.ConstBytes(), int32(f.p.LocalBytes),
		int32(f.registers), of.Arch(), int32(f.m.c.d.o.Capability), 0, int32(f.maxDynamic), -1,
	}
}

func (c *Context) freeVars(m *module) {
	for _, addr := range m.vars {
		e, ok := c.allocs[addr]
		if !ok { // the context was destroyed in the meantime, and its memory freed
			continue
		}
		delete(c.allocs, addr)
		c.d.mem.release(c.away.left(addr, e))
		c.mu.Unlock()
		c.forget(addr, e)
		c.mu.Lock()
	}
	m.vars = nil
}

// ModuleUnload implements worker.Context. The variables are freed after the work
// enqueued so far.
func (c *Context) ModuleUnload(mod worker.Module) error {
	m, ok := mod.(*module)
	c.mu.Lock()
	if !ok || m == nil || !c.modules[m] {
		c.mu.Unlock()
		return abi.ErrInvalidHandle
	}
	delete(c.modules, m)
	c.mu.Unlock()
	for _, addr := range m.vars {
		if err := c.MemFree(addr); err != nil {
			return err
		}
	}
	return nil
}

// function returns a kernel of the context, compiled, or the error that makes it
// unusable.
func (c *Context) function(fn worker.Function) (*function, error) {
	f, ok := fn.(*function)
	if !ok || f == nil || f.m.c != c {
		return nil, abi.ErrInvalidHandle
	}
	f.load()
	return f, f.refused
}

// CUfunction_attribute 8, 9, 14 and 15. The last three do not change results. No
// cluster may be larger than the portable size.
const (
	attrMaxDynamicShared   = 8
	attrSharedCarveout     = 9
	attrNonPortableCluster = 14 // 0 or 1
	attrClusterScheduling  = 15 // CUclusterSchedulingPolicy, 0 to 2
)

// FuncSetAttribute implements worker.Context.
func (c *Context) FuncSetAttribute(fn worker.Function, attribute, value int32) error {
	f, err := c.function(fn)
	if err != nil {
		return err
	}
	switch attribute {
	case attrMaxDynamicShared:
		if value < 0 || uint64(value)+uint64(f.p.SharedBytes) > c.d.optIn() {
			return abi.ErrInvalidValue
		}
		c.mu.Lock()
		f.maxDynamic = uint32(value)
		c.mu.Unlock()
	case attrSharedCarveout:
	case attrNonPortableCluster, attrClusterScheduling:
		if value < 0 || value > attribute-attrNonPortableCluster+1 {
			return abi.ErrInvalidValue
		}
	default:
		return abi.ErrInvalidValue
	}
	return nil
}
