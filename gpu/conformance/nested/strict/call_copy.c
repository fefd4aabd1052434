/* Copies and fills. */
#include <string.h>

#include "call.h"

EXPORT int cuMemcpyHtoDAsync_v2(u d, const void *s, size_t n, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	memory_check(__func__, d, n, false);
	memory_check(__func__, (u)s, n, true); /* otherwise it waits until the bytes are staged */
	release();
	int r = CALL(cuMemcpyHtoDAsync_v2, d, s, n, st);
	if (r == 0) {
		acquire();
		put_copy(stream, s, n);
		release();
	}
	return r;
}

/* The destination is overwritten with garbage at once, so that reading it too early fails. */
EXPORT int cuMemcpyDtoHAsync_v2(void *d, u s, size_t n, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	memory_check(__func__, s, n, false);
	memory_check(__func__, (u)d, n, true);
	put(stream, 0);
	release();
	memset(d, 0xa5, n);
	return CALL(cuMemcpyDtoHAsync_v2, d, s, n, st);
}

EXPORT int cuMemcpyDtoDAsync_v2(u d, u s, size_t n, u st)
{
	acquire();
	struct object *stream = stream_find(__func__, st);
	memory_check(__func__, d, n, false);
	memory_check(__func__, s, n, false);
	put(stream, 0);
	release();
	return CALL(cuMemcpyDtoDAsync_v2, d, s, n, st);
}

static void fill(const char *function, u d, size_t n, size_t width, u st)
{
	acquire();
	struct object *stream = stream_find(function, st);
	if (d % width)
		broken(function, "%#zx is not a multiple of the element's %zu bytes", d, width);
	memory_check(function, d, n * width, false);
	put(stream, 0);
	release();
}

EXPORT int cuMemsetD8Async(u d, unsigned char v, size_t n, u st) { fill(__func__, d, n, 1, st); return CALL(cuMemsetD8Async, d, v, n, st); }
EXPORT int cuMemsetD16Async(u d, unsigned short v, size_t n, u st) { fill(__func__, d, n, 2, st); return CALL(cuMemsetD16Async, d, v, n, st); }
EXPORT int cuMemsetD32Async(u d, unsigned int v, size_t n, u st) { fill(__func__, d, n, 4, st); return CALL(cuMemsetD32Async, d, v, n, st); }
