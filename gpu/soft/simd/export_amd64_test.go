package simd

// Names returns the operations that have a loop in this package.
func Names() (list []string) {
	for name := range loops {
		list = append(list, name)
	}
	return list
}
