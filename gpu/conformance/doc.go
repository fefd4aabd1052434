// Package conformance has the GPU tests for other machines: pack.sh creates one
// folder of test binaries, kernels and a script that runs on a machine with an NVIDIA
// card and without Go, and writes a table (make gpu-check). Package nested provides a
// card, made of the guest library and a soft GPU, for machines without one.
package conformance

import _ "embed"

// Kernels is the PTX of kernels/kernels.cu.
//
//go:embed kernels/kernels.ptx
var Kernels []byte
