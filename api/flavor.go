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
		mebibytes("spec.memoryBytes", s.MemoryBytes, MinMemoryBytes, MaxMemoryBytes),
		volumeBytes("spec.rootBytes", s.RootBytes),
		oneOf("spec.hugePages", s.HugePages, "", HugePages2Mi, HugePages1Gi),
		oneOf("spec.cpuPolicy", s.CPUPolicy, "", CPUShared, CPUDedicated, CPUOptional),
		wholePages("spec.hugePages", s.MemoryBytes, s.HugePages))
}

// volumeBytes checks a size; 0 is valid and means a default chosen elsewhere.
func volumeBytes(field string, n int64) *Error {
	if n == 0 {
		return nil
	}
	return mebibytes(field, n, MinVolumeBytes, MaxVolumeBytes)
}

// mebibytes checks that a size is a whole number of MiB, the granularity of hypervisors
// and disks, and is within its limits.
func mebibytes(field string, n, least, most int64) *Error {
	if err := between(field, n, least, most, bytesUnit); err != nil {
		return err
	}
	if n%(1<<20) != 0 {
		return invalid(field, "must be a whole number of MiB, e.g. %dMiB, got %d bytes", n>>20, n)
	}
	return nil
}
