/* Programs include this file; its content is in cuda_runtime.h. */
#include "cuda_runtime.h"
