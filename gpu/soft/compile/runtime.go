package compile

import (
	_ "embed"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// The functions of CUDA's device runtime library that the soft GPU provides in place of
// NVIDIA's, which is machine code for its own devices. Their names and parameters are those
// by which numba calls those of cooperative groups (its nvvmutils), and those of
// cuda_device_runtime_api.h (CUDA C++ Programming Guide, "Device-Side Launch from PTX").
//
//go:embed grid.ptx
var gridPTX string

//go:embed launch.ptx
var launchPTX string

// launchPrefixes begin the names of the functions that launch kernels: the second in CUDA 12.
var launchPrefixes = [...]string{"cuda", "__cudaCDP2"}

// withoutRuntime leaves out the objects of CUDA's own device runtime library, which define
// functions that the soft GPU provides and use others of NVIDIA's driver. A program has them
// in its list of objects if it was linked with the library. The first objects are those of
// runtimeObjects.
func withoutRuntime(objects []ptx.Object) []ptx.Object {
	ours := 1 + len(launchPrefixes)
	provided := map[string]bool{}
	for _, o := range objects[:ours] {
		exported(o, func(name string) { provided[name] = true })
	}
	kept := objects[:ours:ours]
	for _, o := range objects[ours:] {
		replaced := false
		exported(o, func(name string) { replaced = replaced || provided[name] })
		if !replaced {
			kept = append(kept, o)
		}
	}
	return kept
}

// exported calls each with the functions that an object defines for others. A weak definition
// may be that of a header.
func exported(o ptx.Object, each func(name string)) {
	for _, f := range o.Module.Funcs {
		if !f.Extern && !f.Entry && f.Link == ptx.Visible {
			each(f.Name)
		}
	}
}

// runtimeObjects returns objects with these functions. They must precede the libraries of a
// link, as the first definition in a library is used.
func runtimeObjects() []ptx.Source {
	objects := []ptx.Source{{Name: "the soft GPU's grid.ptx", Text: gridPTX, Library: true}}
	for _, prefix := range launchPrefixes {
		objects = append(objects, ptx.Source{Name: "the soft GPU's launch.ptx", Text: strings.ReplaceAll(launchPTX, "NAME", prefix), Library: true})
	}
	return objects
}
