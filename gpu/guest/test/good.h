/* The tests' tools where names are those of the symbols, not of current versions. */
#ifndef BASALT_TEST_GOOD_H
#define BASALT_TEST_GOOD_H

#define BASALT_CUDA_IMPLEMENTATION
#define cuCtxCreate cuCtxCreate_v2 /* what demo_start means */
#include "api.h"
#undef cuCtxCreate

#endif
