package fatbin

// JIT returns the PTX that libcuda compiles when it loads a fatbin on a GPU of compute
// capability major.minor, without zeros at its end. It does so if the fatbin has no machine
// code for the GPU: that of the same major version, and of the same or a lower minor
// version (CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility").
// Then it compiles the PTX of the highest architecture that the GPU has.
//
// ok is false if it has machine code, and if the answer is uncertain: two images are
// equally good, or there are images of another kind, or options for the compiler.
func JIT(image []byte, major, minor uint32) (source []byte, ok bool) {
	entries, err := Entries(image)
	if err != nil {
		return nil, false
	}
	var best *Entry
	for i := range entries {
		switch e := &entries[i]; {
		case e.Kind == ELF && (e.Arch == 0 || e.runsOn(major, minor)):
			return nil, false
		case e.Kind == ELF:
		case e.Kind != PTX:
			return nil, false
		case e.Arch > 10*major+minor:
		case best != nil && e.Arch == best.Arch:
			return nil, false
		case best == nil || e.Arch > best.Arch:
			best = e
		}
	}
	if best == nil || best.options {
		return nil, false
	}
	source, err = best.Image()
	return source, err == nil
}

// runsOn reports whether a GPU executes the entry's machine code.
func (e *Entry) runsOn(major, minor uint32) bool {
	return e.Arch/10 == major && e.Arch%10 <= minor
}
