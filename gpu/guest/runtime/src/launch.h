#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>

#include "driver_types.h"

/* Launches the kernel of a host symbol. A context must be current. */
cudaError_t launch(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream, bool cooperative);

#endif
