package api

// ValidateFloatingIP checks a spec whose references are ids.
func ValidateFloatingIP(s FloatingIPSpec) error {
	if s.Network != "" && s.Instance == "" {
		return invalid("spec.instance", "which instance of the network?")
	}
	return nil
}

// ChangeFloatingIP checks what may change: whose it is.
func ChangeFloatingIP(old, s FloatingIPSpec) error {
	if old.ExternalNetwork != s.ExternalNetwork {
		return invalid("spec.externalNetwork", "a floating IP stays in its network").WithHint("make another one")
	}
	return nil
}
