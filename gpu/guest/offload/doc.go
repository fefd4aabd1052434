// Package offload contains OpenACC and OpenMP programs that GCC compiles for the GPU. Their
// device code and run-time library (libgomp) are GCC's, so they test our libcuda and the soft
// GPU with code that was not written for them. docs/cuda-programs.md lists the programs.
package offload
