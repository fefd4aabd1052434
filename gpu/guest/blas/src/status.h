/* Names of statuses, and the version, for both libraries. */
#ifndef BLAS_STATUS_H
#define BLAS_STATUS_H

#include "cublas_v2.h"

const char *status_name(cublasStatus_t status);
const char *status_string(cublasStatus_t status);

cublasStatus_t library_property(libraryPropertyType type, int *value);

#endif
