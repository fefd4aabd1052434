/* Programs include this file; its content is in driver_types.h. */
#include "driver_types.h"
