// Arrays, texture and surface objects of the runtime API, which kernels read and write.
#include <vector>

#include "check.h"

__global__ void read2D(float *out, cudaTextureObject_t t, int w, int h)
{
	int x = threadIdx.x, y = threadIdx.y;

	if (x < w && y < h)
		out[y * w + x] = tex2D<float>(t, x + 0.75f, y + 0.5f);
}

__global__ void readMany(float4 *out, cudaTextureObject_t line, cudaTextureObject_t bytes, cudaTextureObject_t layers, cudaTextureObject_t box)
{
	uchar4 b = tex1Dfetch<uchar4>(line, 2);

	out[0] = make_float4(b.x, b.y, b.z, b.w);
	out[1] = tex1Dfetch<float4>(bytes, 1);
	out[2] = make_float4(tex2DLayered<float>(layers, 0.5f, 0.5f, 0), tex2DLayered<float>(layers, 1.5f, 0.5f, 1), tex2DLayered<float>(layers, 9, 9, 9), 0);
	out[3] = make_float4(tex3D<float>(box, 0.5f, 0.5f, 0.5f), tex3D<float>(box, 1, 1, 1), tex3D<int>(box, 0.5f, 0.5f, 0.5f), 0);
}

__global__ void fill(cudaSurfaceObject_t s, int w, int h)
{
	int x = threadIdx.x, y = threadIdx.y;

	surf2Dwrite(make_float2(x, y), s, x * (int)sizeof(float2), y, cudaBoundaryModeZero);
	__syncthreads();
	if (x < w && y < h) {
		float2 v = surf2Dread<float2>(s, x * (int)sizeof(float2), y);

		v.x += 100 * surf2Dread<float2>(s, -800, -800, cudaBoundaryModeClamp).y; // 0
		surf2Dwrite(make_float2(v.x + v.y, v.x), s, x * (int)sizeof(float2), y);
	}
}

__global__ void level(float *out, cudaTextureObject_t t)
{
	out[0] = tex2DLod<float>(t, 0.5f, 0.5f, 0);
	out[1] = tex2DLod<float>(t, 0.5f, 0.5f, 1.5f);
	out[2] = tex2DLod<float>(t, 0.5f, 0.5f, 9);
	out[3] = tex2DGrad<float>(t, 0.5f, 0.5f, make_float2(0.25f, 0), make_float2(0, 0.1f));
}

static cudaTextureObject_t object(const cudaResourceDesc &r, cudaTextureFilterMode filter, cudaTextureReadMode mode, bool normalized = false)
{
	cudaTextureObject_t t;
	cudaTextureDesc d = {}, back;
	cudaResourceDesc same;

	d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = cudaAddressModeClamp;
	d.filterMode = filter;
	d.readMode = mode;
	d.normalizedCoords = normalized;
	d.mipmapFilterMode = cudaFilterModeLinear;
	d.maxMipmapLevelClamp = 10;
	CHECK(cudaCreateTextureObject(&t, &r, &d, nullptr));
	CHECK(cudaGetTextureObjectTextureDesc(&back, t));
	ASSERT(back.filterMode == filter && back.readMode == mode && back.addressMode[1] == cudaAddressModeClamp);
	CHECK(cudaGetTextureObjectResourceDesc(&same, t));
	ASSERT(same.resType == r.resType);
	return t;
}

static cudaResourceDesc of(cudaArray_t a)
{
	cudaResourceDesc r = {};

	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	return r;
}

static void planes()
{
	const int w = 8, h = 4;
	std::vector<float> in(w * h), out(w * h);
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(), got;
	cudaArray_t a;
	cudaExtent extent;
	unsigned int flags = 77;
	float *d;

	for (int i = 0; i < w * h; i++)
		in[i] = i * i;
	CHECK(cudaMallocArray(&a, &desc, w, h));
	CHECK(cudaArrayGetInfo(&got, &extent, &flags, a));
	ASSERT(got.x == 32 && got.f == cudaChannelFormatKindFloat && extent.width == w && extent.height == h && extent.depth == 0 && flags == 0);
	CHECK(cudaMemcpy2DToArray(a, 0, 0, in.data(), w * sizeof(float), w * sizeof(float), h, cudaMemcpyHostToDevice));
	cudaTextureObject_t t = object(of(a), cudaFilterModeLinear, cudaReadModeElementType);
	CHECK(cudaMalloc(&d, w * h * sizeof(float)));
	read2D<<<1, dim3(w, h)>>>(d, t, w, h);
	CHECK(cudaMemcpy(out.data(), d, w * h * sizeof(float), cudaMemcpyDeviceToHost));
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++) {
			float next = in[y * w + (x + 1 < w ? x + 1 : x)];

			ASSERT(out[y * w + x] == 0.75f * in[y * w + x] + 0.25f * next);
		}
	CHECK(cudaMemcpy2DFromArray(out.data(), w * sizeof(float), a, 0, 0, w * sizeof(float), h, cudaMemcpyDeviceToHost));
	ASSERT(out == in);
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaFreeArray(a));
	WANT(cudaFreeArray(a), cudaErrorInvalidResourceHandle);
	WANT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	CHECK(cudaFree(d));
}

static void many()
{
	std::vector<unsigned char> bytes = {0, 1, 2, 3, 4, 5, 6, 255, 8, 9, 10, 11};
	std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
	cudaChannelFormatDesc one = cudaCreateChannelDesc<float>(), four = cudaCreateChannelDesc<uchar4>();
	cudaArray_t layers, box;
	cudaMemcpy3DParms copy = {};
	cudaResourceDesc line = {};
	float4 *d, out[4];
	void *mem;

	CHECK(cudaMalloc(&mem, bytes.size()));
	CHECK(cudaMemcpy(mem, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
	line.resType = cudaResourceTypeLinear;
	line.res.linear.devPtr = mem;
	line.res.linear.desc = four;
	line.res.linear.sizeInBytes = bytes.size();
	CHECK(cudaMalloc3DArray(&layers, &one, make_cudaExtent(2, 2, 2), cudaArrayLayered));
	CHECK(cudaMalloc3DArray(&box, &one, make_cudaExtent(2, 2, 2)));
	copy.srcPtr = make_cudaPitchedPtr(values.data(), 2 * sizeof(float), 2, 2);
	copy.extent = make_cudaExtent(2, 2, 2);
	copy.kind = cudaMemcpyHostToDevice;
	copy.dstArray = layers;
	CHECK(cudaMemcpy3D(&copy));
	copy.dstArray = box;
	CHECK(cudaMemcpy3D(&copy));
	CHECK(cudaMalloc(&d, sizeof out));
	readMany<<<1, 1>>>(d, object(line, cudaFilterModePoint, cudaReadModeElementType), object(line, cudaFilterModePoint, cudaReadModeNormalizedFloat),
			   object(of(layers), cudaFilterModePoint, cudaReadModeElementType), object(of(box), cudaFilterModeLinear, cudaReadModeElementType));
	CHECK(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
	ASSERT(out[0].x == 8 && out[0].y == 9 && out[0].z == 10 && out[0].w == 11);
	ASSERT(out[1].x == (float)(4 / 255.) && out[1].w == 1);
	ASSERT(out[2].x == 1 && out[2].y == 6 && out[2].z == 8);
	ASSERT(out[3].x == 1 && out[3].y == 4.5f && out[3].z == (float)0x3f800000);
	CHECK(cudaFree(d));
}

static void surfaces()
{
	const int w = 6, h = 3;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float2>();
	cudaSurfaceObject_t s;
	cudaArray_t a;
	float2 out[w * h];

	CHECK(cudaMallocArray(&a, &desc, w, h, cudaArraySurfaceLoadStore));
	cudaResourceDesc r = of(a);
	CHECK(cudaCreateSurfaceObject(&s, &r));
	fill<<<1, dim3(w + 2, h + 1)>>>(s, w, h);
	CHECK(cudaMemcpy2DFromArray(out, w * sizeof(float2), a, 0, 0, w * sizeof(float2), h, cudaMemcpyDeviceToHost));
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++)
			ASSERT(out[y * w + x].x == x + y && out[y * w + x].y == x);
	CHECK(cudaDestroySurfaceObject(s));
	CHECK(cudaFreeArray(a));
}

static void levels()
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t m;
	cudaResourceDesc r = {};
	float *d, out[4];

	CHECK(cudaMallocMipmappedArray(&m, &desc, make_cudaExtent(8, 8, 0), 3));
	for (int i = 0; i < 3; i++) {
		std::vector<float> texels(64, 10.f * i);
		cudaArray_t l;

		CHECK(cudaGetMipmappedArrayLevel(&l, m, i));
		CHECK(cudaMemcpy2DToArray(l, 0, 0, texels.data(), (8 >> i) * sizeof(float), (8 >> i) * sizeof(float), 8 >> i, cudaMemcpyHostToDevice));
	}
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = m;
	CHECK(cudaMalloc(&d, sizeof out));
	level<<<1, 1>>>(d, object(r, cudaFilterModeLinear, cudaReadModeElementType, true));
	CHECK(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
	ASSERT(out[0] == 0 && out[1] == 15 && out[2] == 20 && out[3] == 10);
	CHECK(cudaFree(d));
	CHECK(cudaFreeMipmappedArray(m));
}

int main()
{
	planes();
	many();
	surfaces();
	levels();
	CHECK(cudaGetLastError());
	puts("textures: OK");
	return 0;
}
