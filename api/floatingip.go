package api

// ValidateFloatingIP checks a spec whose references are IDs.
func ValidateFloatingIP(s FloatingIPSpec) error {
	if s.Network != "" && s.Instance == "" {
		return invalid("spec.instance", "an instance of the network is required")
	}
	return nil
}

// ChangeFloatingIP checks which fields change: the external network cannot.
func ChangeFloatingIP(old, s FloatingIPSpec) error {
	if old.ExternalNetwork != s.ExternalNetwork {
		return invalid("spec.externalNetwork", "the network of a floating IP cannot change").WithHint("create another one")
	}
	return nil
}
