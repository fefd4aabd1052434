/* The declarations of api.h for tests in which names are those of the symbols, and not of the
 * current versions. */
#ifndef BASALT_TEST_GOOD_H
#define BASALT_TEST_GOOD_H

#define BASALT_CUDA_IMPLEMENTATION
#define cuCtxCreate cuCtxCreate_v2 /* the version that demo_start uses */
#include "api.h"
#undef cuCtxCreate

#endif
