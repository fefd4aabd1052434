package api

// DefaultDisk fills in what follows: only a disk that is taken is wiped, and
// whoever takes it again has to say so again.
func DefaultDisk(s DiskSpec) DiskSpec {
	s.Wipe = s.Wipe && s.Use != DiskUnused
	return s
}

// ValidateDisk checks a spec.
func ValidateDisk(s DiskSpec) error {
	if s.Use != DiskUnused && s.Use != DiskCeph {
		return invalid("spec.use", "unknown value %q", clip(string(s.Use))).WithHint("want ceph or empty")
	}
	return nil
}
