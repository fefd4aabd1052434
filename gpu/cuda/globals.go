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

// contents is what is read from images before libcuda loads them.
type contents struct {
	globals []string // names that variables may have, each once
	prints  bool     // kernels may print
}

// contentsOf reads images: PTX and machine code, for every image of a fatbin. libcuda
// lists a module's kernels but not its variables. Images that cannot be read are left to
// libcuda to reject, and may print.
func contentsOf(images ...[]byte) (c contents) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] && len(c.globals) < maxGlobals {
			seen[name] = true
			c.globals = append(c.globals, name)
		}
	}
	for _, image := range images {
		if fatbin.Is(image) {
			c.prints = readEntries(image, add) || c.prints
		} else {
			c.prints = readImage(image, add) || c.prints
		}
	}
	return c
}

// linkedContents reads all objects of a linked image.
func linkedContents(l *abi.LinkImage) contents {
	var images [][]byte
	for _, o := range l.Objects {
		if inner, err := fatbin.Objects(o.Image); err == nil { // a host object, or a library
			images = append(images, inner...)
		} else {
			images = append(images, o.Image)
		}
	}
	return contentsOf(images...)
}

// readEntries passes the names of variables in a fatbin to add, and reports whether its
// kernels may print.
func readEntries(image []byte, add func(string)) (prints bool) {
	entries, _ := fatbin.Entries(image)
	for _, e := range entries {
		switch part, err := e.Image(); {
		case err != nil:
			prints = true
		case e.Kind == fatbin.ELF || e.Kind == fatbin.PTX:
			prints = readImage(part, add) || prints
		}
	}
	return prints
}

// readImage is readEntries for machine code or PTX.
func readImage(image []byte, add func(string)) (prints bool) {
	if fatbin.IsELF(image) {
		addVars(image, add)
	} else {
		addCandidates(image, add)
	}
	return mayPrint(image)
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
