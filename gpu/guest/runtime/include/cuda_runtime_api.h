/* The CUDA runtime API of Basalt's libcudart, for C and C++. */
#ifndef BASALT_CUDA_RUNTIME_API_H
#define BASALT_CUDA_RUNTIME_API_H

#include "driver_types.h"

#include "basalt_cudart_functions.h"

#ifndef BASALT_CUDART_IMPLEMENTATION
#if CUDART_MAJOR == 12
/* As in the vendor's header, programs of this version use the current layouts. */
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v2_ptsz
#else
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v2
#endif
#endif
#endif

#endif
