package machinestate

import "fmt"

// EncodeVariables returns UEFI variables in the form that nodes stored beside root
// volumes before the state had a version: gzip of the file, and nothing else. It is
// written while a node of such a release is in the cluster.
func EncodeVariables(variables []byte) ([]byte, error) {
	if err := (State{Variables: variables}).Check(); err != nil {
		return nil, err
	}
	return compress(variables)
}

// DecodeVariables decodes what EncodeVariables returned.
func DecodeVariables(raw []byte) (State, error) {
	variables, err := decompress(raw, MaxVariables)
	if err != nil {
		return State{}, fmt.Errorf("UEFI variables are damaged: %w", err)
	}
	return State{Variables: variables}, nil
}

// IsVariables reports whether raw has the form of EncodeVariables.
func IsVariables(raw []byte) bool { return len(raw) > 1 && raw[0] == 0x1f && raw[1] == 0x8b }
