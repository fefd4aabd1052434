package cuda

import (
	"fmt"
	"regexp"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
)

// maxGlobals bounds the variables of a module that are queried: each costs a
// call.
const maxGlobals = 1 << 16

// globalPattern matches candidates for the variables of PTX; the driver reports
// which of them exist, with their address and size. PTX ISA 5.4, "Variables".
var globalPattern = regexp.MustCompile(`(?m)\.(?:global|const)\b[^;={]*?\s([A-Za-z_$%][\w$]*)\s*(?:\[|=|;)`)

// globalNames returns the names that variables of images may have: those in their
// PTX and in their machine code, for every image of a fatbin. libcuda lists a
// module's kernels but not its variables. Images that cannot be read are left to
// libcuda to reject.
func globalNames(images ...[]byte) (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] && len(names) < maxGlobals {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, image := range images {
		switch {
		case fatbin.IsELF(image):
			addVars(image, add)
		case fatbin.Is(image):
			addEntries(image, add)
		default:
			addCandidates(image, add)
		}
	}
	return names
}

// linkedNames returns the names in all objects of a linked image.
func linkedNames(l *abi.LinkImage) []string {
	var images [][]byte
	for _, o := range l.Objects {
		if inner, err := fatbin.Objects(o.Image); err == nil { // a host object, or a library
			images = append(images, inner...)
		} else {
			images = append(images, o.Image)
		}
	}
	return globalNames(images...)
}

func addEntries(image []byte, add func(string)) {
	entries, _ := fatbin.Entries(image)
	for _, e := range entries {
		part, err := e.Image()
		switch {
		case err != nil:
		case e.Kind == fatbin.ELF:
			addVars(part, add)
		case e.Kind == fatbin.PTX:
			addCandidates(part, add)
		}
	}
}

func addCandidates(source []byte, add func(string)) {
	for _, g := range globalPattern.FindAllSubmatch(source, -1) {
		add(string(g[1]))
	}
}

func addVars(machineCode []byte, add func(string)) {
	c, err := fatbin.ReadCubin(machineCode)
	if err != nil {
		return
	}
	for _, v := range c.Vars {
		add(v.Name)
	}
}

// findGlobals queries the addresses of the module's variables. A managed variable
// would be in this process, where the guest's pointer to it is not valid.
func (c *context) findGlobals(m uintptr, names []string, info *abi.ModuleInfo) error {
	address, size := newOut[uint64](), newOut[uint64]()
	defer address.free()
	defer size.free()
	var managed error
	for _, name := range names {
		if pinned(append([]byte(name), 0), func(s uintptr) error { return c.call(cuModuleGetGlobal, address.at(), size.at(), m, s) }) != nil {
			continue // not a variable after all
		}
		if c.isManaged(*address.value) {
			managed = fmt.Errorf("%w: managed variable %s of the module cannot be shared between GPU and guest", abi.ErrNotSupported, name)
			continue
		}
		c.addGlobal(*address.value, *size.value)
		info.Globals = append(info.Globals, abi.GlobalInfo{Name: name, Address: *address.value, Size: *size.value})
	}
	return managed
}

// attributeIsManaged is a CUpointer_attribute, from cuda.h.
const attributeIsManaged = 8

func (c *context) isManaged(address uint64) bool {
	is := newOut[uint32]()
	defer is.free()
	return c.d.lib.has(cuPointerGetAttribute) && c.call(cuPointerGetAttribute, is.at(), attributeIsManaged, uintptr(address)) == nil && *is.value != 0
}
