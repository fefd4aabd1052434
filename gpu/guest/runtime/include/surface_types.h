/* What programs expect here is in driver_types.h. */
#include "driver_types.h"
