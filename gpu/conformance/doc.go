// Package conformance holds the GPU tests that travel: pack.sh makes one folder of
// test binaries, kernels and a script that runs on a machine with an NVIDIA
// card and no Go, and writes a table (make gpu-check).
package conformance

import _ "embed"

// Kernels is the PTX of kernels/kernels.cu.
//
//go:embed kernels/kernels.ptx
var Kernels []byte
