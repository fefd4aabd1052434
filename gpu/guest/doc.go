// Package guest holds the guest's side of the vGPU, in C: libcuda, libnvidia-ml,
// nvidia-smi and the installer of the guest tools. DESIGN.md describes how it works;
// gpu/cudaapi/gen generates part of it.
package guest
