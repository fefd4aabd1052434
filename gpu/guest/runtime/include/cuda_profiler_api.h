/* Programs include this file; its content is in cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
