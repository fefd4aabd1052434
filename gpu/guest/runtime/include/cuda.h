/* The driver API, for programs that use both: that of basalt_cuda.h, which lies
 * in the folder above where the guest tools are installed. */
#ifndef BASALT_CUDA_H_FORWARD
#define BASALT_CUDA_H_FORWARD

#include "../basalt_cuda.h"

#define CUDA_VERSION 12040

#endif
