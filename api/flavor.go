package api

// Limits of a flavor and of volumes.
const (
	MaxVCPUs       = 256
	MinMemoryBytes = 64 << 20
	MaxMemoryBytes = 16 << 40
	MinVolumeBytes = 1 << 20
	MaxVolumeBytes = 64 << 40
)

// ValidateFlavor checks a spec.
func ValidateFlavor(s FlavorSpec) error {
	return joined(
		between("spec.vcpus", s.Vcpus, 1, MaxVCPUs, ""),
		between("spec.memoryBytes", s.MemoryBytes, MinMemoryBytes, MaxMemoryBytes, bytesUnit),
		wholeMiB("spec.memoryBytes", s.MemoryBytes),
		volumeBytes("spec.rootBytes", s.RootBytes))
}

// volumeBytes checks a size that may be 0 (somebody else's choice).
func volumeBytes(field string, n int64) *Error {
	if n == 0 {
		return nil
	}
	if err := between(field, n, MinVolumeBytes, MaxVolumeBytes, bytesUnit); err != nil {
		return err
	}
	return wholeMiB(field, n)
}

// wholeMiB: hypervisors and disks take no smaller steps.
func wholeMiB(field string, n int64) *Error {
	if n%(1<<20) != 0 {
		return invalid(field, "%d bytes is no whole number of MiB", n).
			WithHint("%d or %d", n>>20<<20, (n>>20+1)<<20)
	}
	return nil
}
