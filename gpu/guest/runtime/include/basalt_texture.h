/* Functions of device code that read texture objects, and read and write surface objects: PTX's
 * instructions, and the conversion of their channels to the requested type. */
#ifndef BASALT_TEXTURE_H
#define BASALT_TEXTURE_H

#include "basalt_device.h"

/* Four channels, as an instruction returns them. */
struct basalt_channels {
	float x, y, z, w;
};
template <class C> struct basalt_channel_as {
	static __attribute__((device)) C of(float v) { return (C)__builtin_bit_cast(int, v); }
};
template <> struct basalt_channel_as<float> {
	static __attribute__((device)) float of(float v) { return v; }
};

template <class T> struct basalt_texel;
#define BASALT_TEXEL(t, n) \
	template <> struct basalt_texel<t> { \
		static __attribute__((device)) t of(basalt_channels c) { return basalt_channel_as<t>::of(c.x); } \
	}; \
	template <> struct basalt_texel<n##1> { \
		static __attribute__((device)) n##1 of(basalt_channels c) { return n##1{basalt_channel_as<t>::of(c.x)}; } \
	}; \
	template <> struct basalt_texel<n##2> { \
		static __attribute__((device)) n##2 of(basalt_channels c) { return n##2{basalt_channel_as<t>::of(c.x), basalt_channel_as<t>::of(c.y)}; } \
	}; \
	template <> struct basalt_texel<n##4> { \
		static __attribute__((device)) n##4 of(basalt_channels c) { return n##4{basalt_channel_as<t>::of(c.x), basalt_channel_as<t>::of(c.y), basalt_channel_as<t>::of(c.z), basalt_channel_as<t>::of(c.w)}; } \
	};
BASALT_TEXEL(signed char, char)
BASALT_TEXEL(unsigned char, uchar)
BASALT_TEXEL(short, short)
BASALT_TEXEL(unsigned short, ushort)
BASALT_TEXEL(int, int)
BASALT_TEXEL(unsigned int, uint)
BASALT_TEXEL(float, float)
template <> struct basalt_texel<char> {
	static __attribute__((device)) char of(basalt_channels c) { return basalt_channel_as<char>::of(c.x); }
};

/* Defines name(object, parameters): the instruction with its coordinates and other operands. */
#define BASALT_FETCH(name, parameters, instruction, operands, ...) \
	template <class T> BASALT_DEVICE T name parameters \
	{ \
		basalt_channels c; \
		__asm__ __volatile__(instruction " {%0, %1, %2, %3}, [%4, " operands ";" : "=f"(c.x), "=f"(c.y), "=f"(c.z), "=f"(c.w) : "l"(t), __VA_ARGS__); \
		return basalt_texel<T>::of(c); \
	}
BASALT_FETCH(tex1Dfetch, (cudaTextureObject_t t, int x), "tex.1d.v4.f32.s32", "{%5}]", "r"(x))
BASALT_FETCH(tex1D, (cudaTextureObject_t t, float x), "tex.1d.v4.f32.f32", "{%5}]", "f"(x))
BASALT_FETCH(tex2D, (cudaTextureObject_t t, float x, float y), "tex.2d.v4.f32.f32", "{%5, %6}]", "f"(x), "f"(y))
BASALT_FETCH(tex3D, (cudaTextureObject_t t, float x, float y, float z), "tex.3d.v4.f32.f32", "{%5, %6, %7, %7}]", "f"(x), "f"(y), "f"(z))
BASALT_FETCH(tex1DLayered, (cudaTextureObject_t t, float x, int layer), "tex.a1d.v4.f32.f32", "{%5, %6}]", "r"(layer), "f"(x))
BASALT_FETCH(tex2DLayered, (cudaTextureObject_t t, float x, float y, int layer), "tex.a2d.v4.f32.f32", "{%5, %6, %7, %7}]", "r"(layer), "f"(x), "f"(y))
BASALT_FETCH(texCubemap, (cudaTextureObject_t t, float x, float y, float z), "tex.cube.v4.f32.f32", "{%5, %6, %7, %7}]", "f"(x), "f"(y), "f"(z))
BASALT_FETCH(texCubemapLayered, (cudaTextureObject_t t, float x, float y, float z, int layer), "tex.acube.v4.f32.f32", "{%5, %6, %7, %8}]", "r"(layer), "f"(x), "f"(y), "f"(z))
BASALT_FETCH(tex1DLod, (cudaTextureObject_t t, float x, float level), "tex.level.1d.v4.f32.f32", "{%5}], %6", "f"(x), "f"(level))
BASALT_FETCH(tex2DLod, (cudaTextureObject_t t, float x, float y, float level), "tex.level.2d.v4.f32.f32", "{%5, %6}], %7", "f"(x), "f"(y), "f"(level))
BASALT_FETCH(tex3DLod, (cudaTextureObject_t t, float x, float y, float z, float level), "tex.level.3d.v4.f32.f32", "{%5, %6, %7, %7}], %8", "f"(x), "f"(y), "f"(z), "f"(level))
BASALT_FETCH(tex2DGrad, (cudaTextureObject_t t, float x, float y, float2 dx, float2 dy), "tex.grad.2d.v4.f32.f32", "{%5, %6}], {%7, %8}, {%9, %10}", "f"(x), "f"(y), "f"(dx.x), "f"(dx.y), "f"(dy.x), "f"(dy.y))
BASALT_FETCH(basalt_gather0, (cudaTextureObject_t t, float x, float y), "tld4.r.2d.v4.f32.f32", "{%5, %6}]", "f"(x), "f"(y))
BASALT_FETCH(basalt_gather1, (cudaTextureObject_t t, float x, float y), "tld4.g.2d.v4.f32.f32", "{%5, %6}]", "f"(x), "f"(y))
BASALT_FETCH(basalt_gather2, (cudaTextureObject_t t, float x, float y), "tld4.b.2d.v4.f32.f32", "{%5, %6}]", "f"(x), "f"(y))
BASALT_FETCH(basalt_gather3, (cudaTextureObject_t t, float x, float y), "tld4.a.2d.v4.f32.f32", "{%5, %6}]", "f"(x), "f"(y))
template <class T> BASALT_DEVICE T tex2Dgather(cudaTextureObject_t t, float x, float y, int channel = 0)
{
	switch (channel) {
	case 0: return basalt_gather0<T>(t, x, y);
	case 1: return basalt_gather1<T>(t, x, y);
	case 2: return basalt_gather2<T>(t, x, y);
	}
	return basalt_gather3<T>(t, x, y);
}

enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };

/* Elements of 1 to 16 bytes. The first coordinate counts bytes. */
template <class T> union basalt_element {
	T value;
	unsigned short half;
	unsigned int word[4];
};
#define BASALT_SULD(geometry, mode, place, ...) \
	if (sizeof(T) == 1) \
		__asm__ __volatile__("suld.b." geometry ".b8." mode " %[h], [%[s], " place "];" : [h] "=h"(u.half) : [s] "l"(s), __VA_ARGS__); \
	else if (sizeof(T) == 2) \
		__asm__ __volatile__("suld.b." geometry ".b16." mode " %[h], [%[s], " place "];" : [h] "=h"(u.half) : [s] "l"(s), __VA_ARGS__); \
	else if (sizeof(T) == 4) \
		__asm__ __volatile__("suld.b." geometry ".b32." mode " %[a], [%[s], " place "];" : [a] "=r"(u.word[0]) : [s] "l"(s), __VA_ARGS__); \
	else if (sizeof(T) == 8) \
		__asm__ __volatile__("suld.b." geometry ".v2.b32." mode " {%[a], %[b]}, [%[s], " place "];" \
				     : [a] "=r"(u.word[0]), [b] "=r"(u.word[1]) : [s] "l"(s), __VA_ARGS__); \
	else \
		__asm__ __volatile__("suld.b." geometry ".v4.b32." mode " {%[a], %[b], %[c], %[d]}, [%[s], " place "];" \
				     : [a] "=r"(u.word[0]), [b] "=r"(u.word[1]), [c] "=r"(u.word[2]), [d] "=r"(u.word[3]) : [s] "l"(s), __VA_ARGS__);
#define BASALT_SUST(geometry, mode, place, ...) \
	if (sizeof(T) == 1) \
		__asm__ __volatile__("sust.b." geometry ".b8." mode " [%[s], " place "], %[h];" : : [h] "h"(u.half), [s] "l"(s), __VA_ARGS__ : "memory"); \
	else if (sizeof(T) == 2) \
		__asm__ __volatile__("sust.b." geometry ".b16." mode " [%[s], " place "], %[h];" : : [h] "h"(u.half), [s] "l"(s), __VA_ARGS__ : "memory"); \
	else if (sizeof(T) == 4) \
		__asm__ __volatile__("sust.b." geometry ".b32." mode " [%[s], " place "], %[a];" : : [a] "r"(u.word[0]), [s] "l"(s), __VA_ARGS__ : "memory"); \
	else if (sizeof(T) == 8) \
		__asm__ __volatile__("sust.b." geometry ".v2.b32." mode " [%[s], " place "], {%[a], %[b]};" \
				     : : [a] "r"(u.word[0]), [b] "r"(u.word[1]), [s] "l"(s), __VA_ARGS__ : "memory"); \
	else \
		__asm__ __volatile__("sust.b." geometry ".v4.b32." mode " [%[s], " place "], {%[a], %[b], %[c], %[d]};" \
				     : : [a] "r"(u.word[0]), [b] "r"(u.word[1]), [c] "r"(u.word[2]), [d] "r"(u.word[3]), [s] "l"(s), __VA_ARGS__ : "memory");
#define BASALT_BY_MODE(what, geometry, place, ...) \
	if (mode == cudaBoundaryModeZero) { \
		what(geometry, "zero", place, __VA_ARGS__) \
	} else if (mode == cudaBoundaryModeClamp) { \
		what(geometry, "clamp", place, __VA_ARGS__) \
	} else { \
		what(geometry, "trap", place, __VA_ARGS__) \
	}
#define BASALT_PARAMETERS(...) __VA_ARGS__
#define BASALT_SURFACE(name, parameters, geometry, place, ...) \
	template <class T> \
	BASALT_DEVICE T name##read(cudaSurfaceObject_t s, parameters, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) \
	{ \
		basalt_element<T> u; \
		BASALT_BY_MODE(BASALT_SULD, geometry, place, __VA_ARGS__) \
		return u.value; \
	} \
	template <class T> \
	BASALT_DEVICE void name##read(T *to, cudaSurfaceObject_t s, parameters, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) \
	{ \
		basalt_element<T> u; \
		BASALT_BY_MODE(BASALT_SULD, geometry, place, __VA_ARGS__) \
		*to = u.value; \
	} \
	template <class T> \
	BASALT_DEVICE void name##write(T value, cudaSurfaceObject_t s, parameters, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) \
	{ \
		basalt_element<T> u; \
		u.value = value; \
		BASALT_BY_MODE(BASALT_SUST, geometry, place, __VA_ARGS__) \
	}
BASALT_SURFACE(surf1D, int x, "1d", "{%[x]}", [x] "r"(x))
BASALT_SURFACE(surf2D, BASALT_PARAMETERS(int x, int y), "2d", "{%[x], %[y]}", [x] "r"(x), [y] "r"(y))
BASALT_SURFACE(surf3D, BASALT_PARAMETERS(int x, int y, int z), "3d", "{%[x], %[y], %[z], %[z]}", [x] "r"(x), [y] "r"(y), [z] "r"(z))
BASALT_SURFACE(surf1DLayered, BASALT_PARAMETERS(int x, int layer), "a1d", "{%[l], %[x]}", [x] "r"(x), [l] "r"(layer))
BASALT_SURFACE(surf2DLayered, BASALT_PARAMETERS(int x, int y, int layer), "a2d", "{%[l], %[x], %[y], %[y]}", [x] "r"(x), [y] "r"(y), [l] "r"(layer))
/* The faces of a cube map are layers. */
BASALT_SURFACE(surfCubemap, BASALT_PARAMETERS(int x, int y, int face), "a2d", "{%[l], %[x], %[y], %[y]}", [x] "r"(x), [y] "r"(y), [l] "r"(face))

#endif
