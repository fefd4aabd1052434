#ifndef PROPERTIES_H
#define PROPERTIES_H

#include "driver_types.h"

/* An attribute of a device; 0 where the driver does not know it. */
int attribute(int number, int device);
/* The fields that are no attributes. */
cudaError_t identity(char name[256], cudaUUID_t *uuid, char luid[8], unsigned int *mask, size_t *memory, int device);
/* Fill the layout of one major version. */
cudaError_t properties_11(void *out, int device);
cudaError_t properties_12(void *out, int device);
cudaError_t properties_13(void *out, int device);

#endif
