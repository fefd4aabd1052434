// Package guest holds the guest's side of the vGPU, in C: libcuda, libnvidia-ml,
// nvidia-smi and the installer of guest tools. DESIGN.md tells how it works;
// gpu/cudaapi/gen writes part of it.
package guest
