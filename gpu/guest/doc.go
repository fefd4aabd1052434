// Package guest holds the guest's side of the vGPU, in C: libcuda, libnvidia-ml,
// nvidia-smi and the installer of guest tools. DESIGN.md tells how it works;
// the Go files here only generate and test.
package guest

//go:generate go run ./gen
