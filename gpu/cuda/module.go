package cuda

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// module is a CUmodule.
type module struct {
	handle  uintptr
	globals []uint64 // addresses
	prints  bool     // its kernels may print

	bound     []binding // of its references; replaced, never changed (issuer)
	inLibcuda []binding // what libcuda has bound to them (loop)

	mu       sync.Mutex // guards unloaded; held while a function is loaded
	unloaded bool
}

// kernel is a CUfunction.
type kernel struct {
	handle uintptr
	module *module
	info   abi.FunctionInfo // name and parameters
}

// CUjit_option, from cuda.h.
const (
	jitMaxRegisters            = 0
	jitInfoLogBuffer           = 3
	jitInfoLogBufferSizeBytes  = 4
	jitErrorLogBuffer          = 5
	jitErrorLogBufferSizeBytes = 6
	jitOptimizationLevel       = 7
)

// logSize bounds each of the JIT's logs, in bytes.
const logSize = 16 << 10

// jit has the option arrays of cuModuleLoadDataEx and its logs.
type jit struct {
	options     [6]int32
	values      [6]uintptr
	info, error [logSize]byte
}

// ModuleLoad implements worker.Context.
func (c *context) ModuleLoad(image []byte, o worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	c.calls.RLock()
	defer c.calls.RUnlock()
	if err := c.failed(); err != nil {
		return nil, nil, info, err
	}
	if abi.IsLinkImage(image) {
		return c.loadLinked(image, o)
	}
	return c.loadWhole(image, o)
}

// loadWhole loads an image that needs no linking.
func (c *context) loadWhole(image []byte, o worker.ModuleOptions) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	var info abi.ModuleInfo
	isPTX := !fatbin.IsELF(image) && !fatbin.Is(image)
	if isPTX {
		image = append(bytes.TrimRight(image, "\x00"), 0)
	}
	m := newOut[uintptr]()
	defer m.free()
	load := c.loadImage
	if source, ok := c.compiledSource(image); ok {
		load = c.loadPTX(source)
	}
	if err := load(m, image, o, &info); err != nil {
		return nil, nil, info, err
	}
	var source string
	if isPTX {
		source = string(image[:len(image)-1])
	}
	return c.loaded(*m.value, source, contentsOf(image), o.Lazy, info)
}

// loaded lists the contents of a module that libcuda has loaded.
func (c *context) loaded(handle uintptr, source string, has contents, lazy bool, info abi.ModuleInfo) (worker.Module, []worker.Function, abi.ModuleInfo, error) {
	mod := &module{handle: handle, prints: has.prints}
	functions, err := c.functions(mod, source, &info)
	if err == nil && !lazy {
		err = c.loadFunctions(functions, &info)
	}
	if err == nil {
		err = c.findGlobals(handle, has.globals, &info)
	}
	for _, g := range info.Globals {
		mod.globals = append(mod.globals, g.Address)
	}
	if err != nil {
		c.dropGlobals(mod)
		_ = c.call(cuModuleUnload, handle)
		return nil, nil, abi.ModuleInfo{ErrorLog: info.ErrorLog + err.Error() + "\n"}, err
	}
	return mod, functions, info, nil
}

func (c *context) loadImage(m *out[uintptr], image []byte, o worker.ModuleOptions, info *abi.ModuleInfo) error {
	j := newOut[jit]()
	defer j.free()
	n := j.value.fill(o)
	err := pinned(image, func(address uintptr) error {
		return c.call(cuModuleLoadDataEx, m.at(), address, uintptr(n), addressOf(&j.value.options), addressOf(&j.value.values))
	})
	info.InfoLog, info.ErrorLog = untilNUL(j.value.info[:]), untilNUL(j.value.error[:])
	return err
}

// functions lists the module's kernels: from the driver if it can (CUDA 12.4),
// otherwise from the PTX.
func (c *context) functions(m *module, source string, info *abi.ModuleInfo) (list []worker.Function, err error) {
	if c.d.lib.has(cuModuleEnumerateFunctions) && c.d.lib.has(cuFuncGetName) && c.d.lib.has(cuFuncGetParamInfo) {
		list, err = c.enumerate(m, info)
	} else if source != "" {
		list, err = c.fromPTX(m, source, info)
	} else {
		err = fmt.Errorf("%w: machine code without PTX needs the driver of CUDA 12.4 or newer", abi.ErrNoBinaryForGPU)
	}
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		c.readAttributes(f.(*kernel), &info.Functions[i])
	}
	return list, nil
}

// loadFunctions loads all functions, for a guest that does not load each itself.
func (c *context) loadFunctions(list []worker.Function, info *abi.ModuleInfo) error {
	for i, f := range list {
		if err := c.loadFunction(f.(*kernel)); err != nil {
			return fmt.Errorf("kernel %s: %w", info.Functions[i].Name, err)
		}
		c.readAttributes(f.(*kernel), &info.Functions[i])
	}
	return nil
}

// readAttributes queries all CUfunction_attribute. Some attributes of a function
// that is not loaded stay 0 (CUDA driver API, cuFuncGetAttribute).
func (c *context) readAttributes(k *kernel, info *abi.FunctionInfo) {
	v := newOut[int32]()
	defer v.free()
	for a := range abi.FunctionAttributes {
		if c.call(cuFuncGetAttribute, v.at(), uintptr(a), k.handle) == nil {
			info.Attributes[a] = *v.value
		}
	}
}

// FunctionInfo implements worker.LazyLoader: libcuda loads most functions on first use.
func (c *context) FunctionInfo(f worker.Function) (abi.FunctionInfo, error) {
	k, ok := f.(*kernel)
	if !ok {
		return abi.FunctionInfo{}, abi.ErrInvalidHandle
	}
	c.calls.RLock()
	defer c.calls.RUnlock()
	k.module.mu.Lock()
	defer k.module.mu.Unlock()
	if err := c.failed(); err != nil {
		return abi.FunctionInfo{}, err
	}
	if k.module.unloaded {
		return abi.FunctionInfo{}, abi.ErrInvalidHandle
	}
	if err := c.loadFunction(k); err != nil {
		return abi.FunctionInfo{}, err
	}
	info := k.info
	c.readAttributes(k, &info)
	return info, nil
}

// loadFunction loads a function; drivers before CUDA 12.4 load a function when it is
// looked up.
func (c *context) loadFunction(k *kernel) error {
	if !c.d.lib.has(cuFuncLoad) {
		return nil
	}
	return c.call(cuFuncLoad, k.handle)
}

// maxFunctions bounds the kernels of one module; maxParams the parameters of one kernel.
const (
	maxFunctions = 1 << 16
	maxParams    = 4096
)

func (c *context) enumerate(m *module, info *abi.ModuleInfo) (list []worker.Function, err error) {
	n := newOut[uint32]()
	defer n.free()
	if err := c.call(cuModuleGetFunctionCount, n.at(), m.handle); err != nil || *n.value == 0 {
		return nil, err
	}
	if *n.value > maxFunctions {
		return nil, fmt.Errorf("%w: module has too many kernels: %d", abi.ErrInvalidImage, *n.value)
	}
	handles := make([]byte, 8*int(*n.value))
	if err := pinned(handles, func(a uintptr) error { return c.call(cuModuleEnumerateFunctions, a, uintptr(*n.value), m.handle) }); err != nil {
		return nil, err
	}
	name, offset, size := newOut[uintptr](), newOut[uint64](), newOut[uint64]()
	defer name.free()
	defer offset.free()
	defer size.free()
	for ; len(handles) > 0; handles = handles[8:] {
		f := uintptr(le64(handles))
		if err := c.call(cuFuncGetName, name.at(), f); err != nil {
			return nil, err
		}
		fi := abi.FunctionInfo{Name: goString(*name.value, 64<<10)}
		for i := range maxParams {
			if c.call(cuFuncGetParamInfo, f, uintptr(i), offset.at(), size.at()) != nil {
				break // INVALID_VALUE: there are no more
			}
			fi.Params = append(fi.Params, abi.ParamInfo{Offset: uint32(*offset.value), Size: uint32(*size.value)})
		}
		info.Functions = append(info.Functions, fi)
		list = append(list, &kernel{f, m, fi})
	}
	return list, nil
}

func (c *context) fromPTX(m *module, source string, info *abi.ModuleInfo) (list []worker.Function, err error) {
	signatures, err := ptx.Signatures(source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", abi.ErrInvalidPTX, err)
	}
	f := newOut[uintptr]()
	defer f.free()
	for _, s := range signatures {
		if err := pinned(append([]byte(s.Name), 0), func(name uintptr) error { return c.call(cuModuleGetFunction, f.at(), m.handle, name) }); err != nil {
			return nil, fmt.Errorf("cuModuleGetFunction %s: %w", s.Name, err)
		}
		fi := signatureInfo(s)
		info.Functions = append(info.Functions, fi)
		list = append(list, &kernel{*f.value, m, fi})
	}
	return list, nil
}

// ModuleUnload implements worker.Context. The module is unloaded when the work
// enqueued so far is done.
func (c *context) ModuleUnload(m worker.Module) error {
	mod, ok := m.(*module)
	if !ok {
		return abi.ErrInvalidHandle
	}
	c.dropGlobals(mod)
	return c.whenDrained(func() {
		mod.mu.Lock()
		defer mod.mu.Unlock()
		mod.unloaded = true
		_ = c.call(cuModuleUnload, mod.handle)
	})
}

func (c *context) dropGlobals(mod *module) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range mod.globals {
		if c.globals[a] { // otherwise the context was destroyed, and the address may belong to another
			delete(c.globals, a)
			_ = c.d.memory.remove(a, true)
		}
	}
}

// FuncSetAttribute implements worker.Context.
func (c *context) FuncSetAttribute(f worker.Function, attribute, value int32) error {
	k, ok := f.(*kernel)
	if !ok {
		return abi.ErrInvalidHandle
	}
	return c.call(cuFuncSetAttribute, k.handle, uintptr(uint32(attribute)), uintptr(uint32(value)))
}

func (c *context) addGlobal(address, size uint64) {
	c.d.memory.add(span{start: address, size: size, global: true})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.globals[address] = true
}

func untilNUL(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
