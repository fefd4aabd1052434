package api

// ValidateGPU checks a spec.
func ValidateGPU(s GPUSpec) error { return joined(poolName("spec.pool", s.Pool)) }

func poolName(field, name string) *Error {
	if name != "" && !namePattern.MatchString(name) {
		return invalid(field, "%q is not a valid name of a GPU pool", clip(name))
	}
	return nil
}
