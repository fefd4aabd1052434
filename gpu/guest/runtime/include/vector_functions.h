/* make_TYPE(…) for the vector types. */
#ifndef BASALT_VECTOR_FUNCTIONS_H
#define BASALT_VECTOR_FUNCTIONS_H

#include "vector_types.h"

#define BASALT_MAKE static __inline__ __attribute__((always_inline, unused)) __host__ __device__
#define BASALT_MAKERS(t, n) \
	BASALT_MAKE n##1 make_##n##1(t x) { n##1 v; v.x = x; return v; } \
	BASALT_MAKE n##2 make_##n##2(t x, t y) { n##2 v; v.x = x, v.y = y; return v; } \
	BASALT_MAKE n##3 make_##n##3(t x, t y, t z) { n##3 v; v.x = x, v.y = y, v.z = z; return v; } \
	BASALT_MAKE n##4 make_##n##4(t x, t y, t z, t w) { n##4 v; v.x = x, v.y = y, v.z = z, v.w = w; return v; }
BASALT_MAKERS(signed char, char)
BASALT_MAKERS(unsigned char, uchar)
BASALT_MAKERS(short, short)
BASALT_MAKERS(unsigned short, ushort)
BASALT_MAKERS(int, int)
BASALT_MAKERS(unsigned int, uint)
BASALT_MAKERS(long, long)
BASALT_MAKERS(unsigned long, ulong)
BASALT_MAKERS(long long, longlong)
BASALT_MAKERS(unsigned long long, ulonglong)
BASALT_MAKERS(float, float)
BASALT_MAKERS(double, double)

#endif
