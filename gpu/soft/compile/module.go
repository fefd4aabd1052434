// Package compile compiles what CUDA programs load to programs for gpu/soft/exec.
//
// An image is parsed (image.go, fatbin.go), its symbols are placed in a context's
// memory (module.go), and each kernel is compiled with everything it calls: type checks
// (typecheck.go), a graph of basic blocks (graph.go), then each instruction with its
// decoder or by the table of gpu/soft/ops (inst.go).
package compile

import (
	"encoding/binary"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Module is the PTX of an image. Link places its symbols, after which Kernels compiles
// it.
type Module struct {
	mod     *ptx.Module
	lazy    *lazy // nil if mod has all functions' bodies
	spaces  ir.Spaces
	address map[*ptx.Var]uint64 // device addresses of .global and .const
	// code has the addresses of functions; taken has those whose address is used, in
	// order.
	code       map[*ptx.Func]uint64
	taken      []*ptx.Func
	heap       uint64 // the address of the memory of malloc; 0 if no function uses it
	references []Reference
	constBytes int32
	registers  uint32
	// expanded is the size of the kernels compiled so far (limits.go).
	expanded int
}

// Memory provides the memory of a module's symbols.
type Memory interface {
	// Place returns the device address of a variable's new memory, which is zero.
	Place(name string, size uint64) (address uint64, err error)
	// PlaceManaged is Place for a managed variable. It is called for those that
	// Managed lists, in order.
	PlaceManaged(name string, size uint64) (address uint64, err error)
	// Bytes returns that memory, or nil if nothing is to be written there.
	Bytes(address uint64) []byte
	// Code returns an address for one more function, which is not an address of memory.
	Code() uint64
}

// Kernel is a kernel of a module: its program, or why the device cannot run it.
type Kernel struct {
	Name    string
	Params  []abi.ParamInfo
	Program *ir.Program // nil if there is an error, or if the kernel has not been compiled
	Err     error       // a *ptx.Error, which names the instruction and its line
	f       *ptx.Func
}

// Parse parses an image: PTX, a fatbin, or several of them to be linked. An error in
// PTX is a *ptx.Error.
func (c Capability) Parse(image []byte) (*Module, error) {
	mod, registers, err := c.parseImage(image)
	if err != nil {
		return nil, err
	}
	return newModule(mod, registers), nil
}

func newModule(mod *ptx.Module, registers uint32) *Module {
	return &Module{mod: mod, registers: registers, address: map[*ptx.Var]uint64{}, code: map[*ptx.Func]uint64{}}
}

// Arch returns the architecture that the PTX is for.
func (l *Module) Arch() int32 { return int32(l.mod.Arch) }

// MaxRegisters returns the limit of registers per thread that was given to the linker,
// or 0 for no limit.
func (l *Module) MaxRegisters() uint32 { return l.registers }

// ConstBytes returns the size in bytes of the variables in .const.
func (l *Module) ConstBytes() int32 { return l.constBytes }

// HeapBytes is the size of the memory of malloc in a module's kernels: CUDA's initial
// cudaLimitMallocHeapSize. It is device memory of the module.
const HeapBytes = 8 << 20

// Heap returns the address of the memory of malloc, or 0 if no function of the linked
// module uses it.
func (l *Module) Heap() uint64 { return l.heap }

// heapName is the name of the memory of malloc among a module's variables. A PTX
// variable cannot have it.
const heapName = "malloc heap"

// Link assigns memory and initial values to the variables and the heap, and addresses
// to the functions. It must be called once.
func (l *Module) Link(at ir.Spaces, mem Memory) error {
	l.spaces = at
	if err := l.placeVars(mem); err != nil {
		return err
	}
	if err := l.placeReferences(); err != nil {
		return err
	}
	if l.functions(mem) {
		addr, err := mem.Place(heapName, HeapBytes)
		if err != nil {
			return fmt.Errorf("allocate the heap of the kernels: %w", err)
		}
		l.heap = addr
	}
	return l.relocate(mem)
}

// variables returns the variables that have memory, in order.
func (l *Module) variables() (vars []*ptx.Var) {
	all := l.mod.Vars
	for _, f := range l.mod.Funcs {
		all = append(all, f.Vars...)
	}
	for _, v := range all {
		if (v.Space == ptx.Global || v.Space == ptx.Const) && !v.Type.Opaque() {
			vars = append(vars, v)
		}
	}
	return vars
}

// Managed returns the managed variables, whose memory is shared with the program.
func (l *Module) Managed() (list []abi.GlobalInfo) {
	for _, v := range l.variables() {
		if v.Managed && !v.Extern {
			list = append(list, abi.GlobalInfo{Name: v.Name, Size: v.Size})
		}
	}
	return list
}

func (l *Module) placeVars(mem Memory) error {
	for _, v := range l.variables() {
		if v.Extern {
			return unresolved(v)
		}
		place := mem.Place
		if v.Managed {
			place = mem.PlaceManaged
		}
		addr, err := place(v.Name, v.Size)
		if err != nil {
			return err
		}
		l.address[v] = addr
		copy(mem.Bytes(addr), v.Init)
		if v.Space == ptx.Const {
			l.constBytes += int32(v.Size)
		}
	}
	return nil
}

func unresolved(v *ptx.Var) error {
	return &ptx.Error{Object: v.Object, Line: v.Line, Msg: "unresolved extern variable " + v.Name}
}

// functions assigns an address to each function whose address a module uses, and
// reports whether one uses the device's heap.
func (l *Module) functions(mem Memory) (heap bool) {
	assign := func(f *ptx.Func) {
		if _, ok := l.code[f]; f == nil || ok || f.Extern {
			return
		}
		l.code[f] = mem.Code()
		if !f.Entry { // kernels are launched, not called
			l.taken = append(l.taken, f)
		}
	}
	for _, v := range l.mod.Vars {
		for _, r := range v.Relocs {
			assign(r.Func)
		}
	}
	if l.lazy != nil {
		for _, f := range l.mod.Funcs {
			assign(f)
		}
		return l.lazy.heap
	}
	for _, f := range l.mod.Funcs {
		for i := range f.Body {
			in := &f.Body[i]
			if b := builtinOf(in); b != nil && heapUsers[b.Name] {
				heap = true
			}
			if in.Op == "call" {
				continue
			}
			for _, a := range in.Args {
				if a.Kind == ptx.KindFunc {
					assign(a.Func)
				}
			}
		}
	}
	return heap
}

// heapUsers are the functions of the device that use the memory of malloc.
var heapUsers = map[string]bool{"malloc": true, "free": true, ptx.LaunchBuffer: true, ptx.LaunchKernel: true}

// relocate writes addresses to initialized variables.
func (l *Module) relocate(mem Memory) error {
	for _, v := range l.mod.Vars {
		for _, r := range v.Relocs {
			to, ok := l.address[r.Var]
			if r.Func != nil {
				to, ok = l.code[r.Func]
			}
			if !ok {
				return &ptx.Error{Object: v.Object, Line: v.Line, Msg: "initialiser of " + v.Name + " names " + r.Symbol + ", which has no fixed address"}
			}
			b := mem.Bytes(l.address[v])
			if b == nil {
				continue
			}
			if size := uint64(len(b)); r.Offset > size || size-r.Offset < 8 {
				return fmt.Errorf("%w: initialiser of %s: address at offset %d, want 8 bytes there in the variable's %d", abi.ErrInvalidPTX, v.Name, r.Offset, size)
			}
			binary.LittleEndian.PutUint64(b[r.Offset:], to+uint64(r.Addend))
		}
	}
	return nil
}

// Kernels compiles the kernels of a linked module. A kernel with an instruction that is
// not implemented, in itself or in a function that it calls, is refused, and the others
// are not.
func (l *Module) Kernels() []Kernel {
	list := l.Entries()
	for i := range list {
		l.Compile(&list[i])
	}
	return list
}

// Entries returns the kernels of a linked module without compiling them.
func (l *Module) Entries() []Kernel {
	var list []Kernel
	for _, f := range l.mod.Funcs {
		if !f.Entry || f.Extern {
			continue
		}
		k := Kernel{Name: f.Name, f: f}
		for _, v := range f.Params {
			k.Params = append(k.Params, abi.ParamInfo{Offset: v.Offset, Size: uint32(v.Size)})
		}
		list = append(list, k)
	}
	return list
}

// Code returns the address of a kernel by which kernels launch it, or 0 if the module does
// not use its address.
func (l *Module) Code(k *Kernel) uint64 { return l.code[k.f] }

// Compile compiles a kernel. It must not be called concurrently for kernels of one
// module.
func (l *Module) Compile(k *Kernel) {
	if l.lazy == nil {
		k.Program, k.Err = compile(l, k.f)
		return
	}
	if k.Err = l.lazy.open(); k.Err == nil {
		k.Program, k.Err = compile(l, k.f)
		l.lazy.close()
	}
}
