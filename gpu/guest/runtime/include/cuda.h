/* The driver API, for programs that use both APIs. It is in basalt_cuda.h, which the guest tools
 * install in the parent folder. */
#ifndef BASALT_CUDA_H_FORWARD
#define BASALT_CUDA_H_FORWARD

#include "../basalt_cuda.h"

#define CUDA_VERSION 12040

#endif
