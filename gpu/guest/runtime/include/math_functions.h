/* What programs expect here is in cuda_runtime.h. */
#include "cuda_runtime.h"
