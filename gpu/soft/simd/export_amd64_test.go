package simd

import "golang.org/x/sys/cpu"

// Names returns the operations that have a loop in this package.
func Names() (list []string) {
	for name := range loops {
		list = append(list, name)
	}
	return list
}

// SetWide sets whether products use AVX-512, if the processor has it, and returns the
// previous value.
func SetWide(on bool) (before bool) {
	before, wide = wide, on && cpu.X86.HasAVX512F
	return before
}
