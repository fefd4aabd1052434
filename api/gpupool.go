package api

// DefaultPool is the GPU pool used if none is named.
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

// AllocatableBytes returns how many bytes of a GPU's VRAM the pool may allocate, which is at
// least vram.
func (s GPUPoolSpec) AllocatableBytes(vram int64) int64 {
	return vram * max(s.VramOvercommitPercent, 100) / 100
}

// ValidateGPUPool checks a spec.
func ValidateGPUPool(s GPUPoolSpec) error {
	least := int64(100)
	if s.VramOvercommitPercent == 0 {
		least = 0
	}
	return joined(between("spec.vramOvercommitPercent", s.VramOvercommitPercent, least, 400, " %"),
		oneOf("spec.mode", s.Mode, ModeTimeSliced),
		between("spec.maxVgpusPerGpu", s.MaxVgpusPerGpu, 0, 4096, ""))
}
