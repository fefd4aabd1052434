// Package offload holds a suite of programs that GCC compiles for the GPU:
// OpenACC and OpenMP, whose device code and run-time library (libgomp) nobody
// here wrote. Its test runs them with our libcuda on a soft GPU.
// docs/cuda-programs.md lists them.
package offload
