#ifndef PROPERTIES_H
#define PROPERTIES_H

#include "driver_types.h"

/* Returns an attribute of a device, or 0 if the driver does not support it. */
int attribute(int number, int device);
/* Returns the fields that are not attributes. */
cudaError_t identity(char name[256], cudaUUID_t *uuid, char luid[8], unsigned int *mask, size_t *memory, int device);
/* Fill the layout of one major version. */
cudaError_t properties_11(void *out, int device);
cudaError_t properties_12(void *out, int device);
cudaError_t properties_13(void *out, int device);

#endif
