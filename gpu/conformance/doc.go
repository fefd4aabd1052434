// Package conformance holds the GPU tests that travel: pack.sh makes one folder of
// test binaries, kernels and a script that runs on a machine with an NVIDIA
// card and no Go, and writes a table (make gpu-check). Package nested makes a card of
// the guest library and a soft GPU for machines that have none.
package conformance

import _ "embed"

// Kernels is the PTX of kernels/kernels.cu.
//
//go:embed kernels/kernels.ptx
var Kernels []byte
