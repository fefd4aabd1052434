/* Vector types of CUDA: names, members and alignments of the public documentation. */
#ifndef BASALT_VECTOR_TYPES_H
#define BASALT_VECTOR_TYPES_H

#include "host_defines.h"

#define BASALT_VECTOR1(t, n) struct n##1 { t x; }; typedef struct n##1 n##1;
#define BASALT_VECTOR2(t, n, a) struct __attribute__((aligned(a))) n##2 { t x, y; }; typedef struct n##2 n##2;
#define BASALT_VECTOR3(t, n) struct n##3 { t x, y, z; }; typedef struct n##3 n##3;
#define BASALT_VECTOR4(t, n, a) struct __attribute__((aligned(a))) n##4 { t x, y, z, w; }; typedef struct n##4 n##4;
#define BASALT_VECTOR(t, n, a2, a4) BASALT_VECTOR1(t, n) BASALT_VECTOR2(t, n, a2) BASALT_VECTOR3(t, n) BASALT_VECTOR4(t, n, a4)
BASALT_VECTOR(signed char, char, 2, 4)
BASALT_VECTOR(unsigned char, uchar, 2, 4)
BASALT_VECTOR(short, short, 4, 8)
BASALT_VECTOR(unsigned short, ushort, 4, 8)
BASALT_VECTOR(int, int, 8, 16)
BASALT_VECTOR(unsigned int, uint, 8, 16)
BASALT_VECTOR(long, long, 16, 16)
BASALT_VECTOR(unsigned long, ulong, 16, 16)
BASALT_VECTOR(long long, longlong, 16, 16)
BASALT_VECTOR(unsigned long long, ulonglong, 16, 16)
BASALT_VECTOR(float, float, 8, 16)
BASALT_VECTOR(double, double, 16, 16)

struct dim3 {
	unsigned int x, y, z;
#ifdef __cplusplus
	__host__ __device__ constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
	__host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
	__host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
#endif
};
typedef struct dim3 dim3;

#endif
