/* A program that is linked with both libraries, but not with the driver's, starts without a driver
 * and gets an error. */
#include <stdio.h>

#include "cublasLt.h"
#include "cublas_v2.h"

int main(void)
{
	cublasHandle_t handle = (cublasHandle_t)&handle;
	cublasLtHandle_t lt = (cublasLtHandle_t)&lt;
	cublasStatus_t status = cublasCreate(&handle), other = cublasLtCreate(&lt);

	printf("%s %s %s\n", cublasGetStatusName(status), cublasLtGetStatusName(other), handle || lt ? "and a handle" : "and none");
	return 0;
}
