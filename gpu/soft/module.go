package soft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// module is one loaded PTX module.
type module struct {
	c     *Context
	funcs []*function
	vars  []uint64 // device addresses to free
}

// function is one kernel.
type function struct {
	m          *module
	p          *program
	maxDynamic uint32 // bytes of dynamic shared memory allowed, under Context.mu
}

// ModuleLoad implements worker.Context.
func (c *Context) ModuleLoad(image []byte, _ worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	mod, err := parseImage(image)
	var m *module
	if err == nil {
		m, err = c.load(mod, &info)
	}
	if err != nil {
		var pe *ptx.Error
		if errors.As(err, &pe) {
			info.ErrorLog = "ptx: " + pe.Error()
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

func (c *Context) load(mod *ptx.Module, info *abi.ModuleInfo) (*module, error) {
	m := &module{c: c}
	l := &layout{mod: mod, spaces: c.spaces, address: map[*ptx.Var]uint64{}, code: map[*ptx.Func]uint64{}}
	constBytes, err := c.placeAll(m, l, info)
	if err != nil {
		return nil, err
	}
	if err := m.compile(l, constBytes, info); err != nil { // without mu: it takes long
		c.mu.Lock()
		defer c.mu.Unlock()
		c.freeVars(m)
		return nil, err
	}
	info.InfoLog = fmt.Sprintf("soft GPU: %d kernels compiled", len(m.funcs))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usableLocked(); err != nil {
		c.freeVars(m)
		return nil, err
	}
	c.modules[m] = true
	return m, nil
}

// usableLocked returns why the context takes no more modules, or nil.
func (c *Context) usableLocked() error {
	if c.poisoned != nil {
		return c.poisoned
	}
	if c.closed {
		return abi.ErrInvalidContext
	}
	return nil
}

// placeAll gives a module's variables, and its heap, memory and their first
// values, and its functions addresses. It returns the bytes of those in .const.
func (c *Context) placeAll(m *module, l *layout, info *abi.ModuleInfo) (int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usableLocked(); err != nil {
		return 0, err
	}
	constBytes, err := c.placeVars(m, l, info)
	if err == nil && c.functions(l) {
		var addr uint64
		if addr, err = c.place(m, heapName, heapBytes, info); err == nil {
			l.heap = newHeap(addr, heapBytes)
		}
	}
	if err == nil {
		err = relocate(c, l, l.mod)
	}
	if err != nil {
		c.freeVars(m)
		return 0, err
	}
	return constBytes, nil
}

// placeVars is called with mu held.
func (c *Context) placeVars(m *module, l *layout, info *abi.ModuleInfo) (constBytes int32, err error) {
	vars := l.mod.Vars
	for _, f := range l.mod.Funcs {
		vars = append(vars, f.Vars...)
	}
	for _, v := range vars {
		if v.Space != ptx.Global && v.Space != ptx.Const {
			continue
		}
		if v.Extern {
			return 0, &ptx.Error{Object: v.Object, Line: v.Line, Msg: "unresolved extern variable " + v.Name}
		}
		addr, err := c.place(m, v.Name, v.Size, info)
		if err != nil {
			return 0, err
		}
		l.address[v] = addr
		copy(c.backing(addr), v.Init)
		if v.Space == ptx.Const {
			constBytes += int32(v.Size)
		}
	}
	return constBytes, nil
}

// heapName is that of the memory of malloc among a module's variables. No
// variable of PTX can have it.
const heapName = "malloc heap"

// place gives a variable its memory.
func (c *Context) place(m *module, name string, size uint64, info *abi.ModuleInfo) (uint64, error) {
	addr, err := c.allocLocked(max(size, 1))
	if err != nil {
		return 0, err
	}
	m.vars = append(m.vars, addr)
	info.Globals = append(info.Globals, abi.GlobalInfo{Name: name, Address: addr, Size: size})
	return addr, nil
}

// compile makes the module's kernels.
func (m *module) compile(l *layout, constBytes int32, info *abi.ModuleInfo) error {
	for _, f := range l.mod.Funcs {
		if !f.Entry || f.Extern {
			continue
		}
		p, err := compile(l, f)
		if err != nil {
			return err
		}
		fn := &function{m: m, p: p, maxDynamic: maxSharedBytes - min(p.sharedBytes, maxSharedBytes)}
		m.funcs = append(m.funcs, fn)
		info.Functions = append(info.Functions, describe(f, fn, constBytes, l.mod))
	}
	return nil
}

// relocate writes addresses into initialised variables.
func relocate(c *Context, l *layout, mod *ptx.Module) error {
	for _, v := range mod.Vars {
		for _, r := range v.Relocs {
			to, ok := l.address[r.Var]
			if r.Func != nil {
				to, ok = l.code[r.Func]
			}
			if !ok {
				return &ptx.Error{Object: v.Object, Line: v.Line, Msg: "initialiser of " + v.Name + " names " + r.Symbol + ", which has no fixed address"}
			}
			mem := c.backing(l.address[v])
			if size := uint64(len(mem)); r.Offset > size || size-r.Offset < 8 {
				return fmt.Errorf("%w: initialiser of %s at %d", abi.ErrInvalidPTX, v.Name, r.Offset)
			}
			binary.LittleEndian.PutUint64(mem[r.Offset:], to+uint64(r.Addend))
		}
	}
	return nil
}

// describe gives a kernel's attributes, the CUfunction_attribute values 0 to 9.
func describe(f *ptx.Func, fn *function, constBytes int32, mod *ptx.Module) abi.FunctionInfo {
	fi := abi.FunctionInfo{Name: f.Name}
	for _, v := range f.Params {
		fi.Params = append(fi.Params, abi.ParamInfo{Offset: v.Offset, Size: uint32(v.Size)})
	}
	// PTX_VERSION is the architecture that the PTX is for, not the version of
	// the language: libraries choose by it which of their tunings was compiled.
	fi.Attributes = [abi.FunctionAttributes]int32{
		int32(fn.p.maxThreads), int32(fn.p.sharedBytes), constBytes, int32(fn.p.localBytes),
		int32(fn.p.registers()), int32(mod.Arch), capability, 0, int32(fn.maxDynamic), -1,
	}
	return fi
}

func (c *Context) freeVars(m *module) {
	for _, addr := range m.vars {
		e, there := c.allocs[addr]
		if !there { // the context was destroyed meanwhile, and its memory with it
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

// ModuleUnload implements worker.Context. Its variables go when the work
// enqueued so far is done.
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
		if value < 0 || uint64(value)+uint64(f.p.sharedBytes) > maxOptInBytes {
			return abi.ErrInvalidValue
		}
		c.mu.Lock()
		f.maxDynamic = uint32(value)
		c.mu.Unlock()
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
	if blockSize <= 0 || uint32(blockSize) > f.p.maxThreads {
		return 0, abi.ErrInvalidValue
	}
	threads := roundUp(uint32(blockSize), warpSize)
	n := min(maxResidentThreads/threads, maxResidentBlocks, maxRegisters/(roundUp(f.p.registers(), registerUnit)*threads))
	if dynamicShared > maxOptInBytes {
		return 0, nil
	}
	if shared := uint64(f.p.sharedBytes) + dynamicShared; shared > 0 {
		n = uint32(min(uint64(n), maxOptInBytes/shared))
	}
	return int32(n), nil
}

// OccupancyAvailableDynamicSMemPerBlock implements worker.Context: what so many
// blocks leave of a multiprocessor's shared memory, and of a block's limit.
func (c *Context) OccupancyAvailableDynamicSMemPerBlock(fn worker.Function, blocks, blockSize int32) (uint64, error) {
	most, err := c.OccupancyMaxActiveBlocksPerMultiprocessor(fn, blockSize, 0)
	if err != nil {
		return 0, err
	}
	if blocks <= 0 || blocks > most {
		return 0, abi.ErrInvalidValue
	}
	return maxOptInBytes/uint64(blocks) - uint64(fn.(*function).p.sharedBytes), nil
}
