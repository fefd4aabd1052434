package api

// DefaultPool is the GPU pool of what names none.
const DefaultPool = "default"

// ModeTimeSliced shares a GPU by time, isolated and exactly metered.
const ModeTimeSliced = "time-sliced"

// DefaultGPUPool fills in what was left out.
func DefaultGPUPool(s GPUPoolSpec) GPUPoolSpec {
	if s.Mode == "" {
		s.Mode = ModeTimeSliced
	}
	return s
}

// ValidateGPUPool checks a spec.
func ValidateGPUPool(s GPUPoolSpec) error {
	return firstError(oneOf("spec.mode", s.Mode, ModeTimeSliced),
		between("spec.maxVgpusPerGpu", s.MaxVgpusPerGpu, 0, 4096, ""))
}
