/* What programs expect here is in cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
