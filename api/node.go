package api

// ValidateNode checks a spec.
func ValidateNode(NodeSpec) error { return nil }
