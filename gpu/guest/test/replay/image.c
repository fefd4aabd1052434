/* The kernels of the replay: as PTX, as PTX in a fatbin, and in the wrapper of nvcc (gpu/fatbin
 * describes the layouts). */
#include <stdint.h>

#include "replay.h"

const char kernels[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
	".visible .entry fill(.param .u64 to, .param .u32 value, .param .u32 n)\n{\n"
	".reg .pred %p;\n.reg .u32 %r<7>;\n.reg .u64 %d<3>;\n"
	"ld.param.u64 %d1, [to];\nld.param.u32 %r1, [value];\nld.param.u32 %r2, [n];\n"
	"mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.u32 %r6, %r3, %r4, %r5;\n"
	"setp.ge.u32 %p, %r6, %r2;\n@%p bra done;\n"
	"mul.wide.u32 %d2, %r6, 4;\nadd.u64 %d1, %d1, %d2;\nadd.u32 %r1, %r1, %r6;\nst.global.u32 [%d1], %r1;\n"
	"done:\nret;\n}\n"
	".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
	".reg .pred %p;\n.reg .u32 %r<8>;\n.reg .u64 %d<5>;\n"
	"ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nld.param.u64 %d3, [c];\nld.param.u32 %r2, [n];\n"
	"mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.u32 %r6, %r3, %r4, %r5;\n"
	"setp.ge.u32 %p, %r6, %r2;\n@%p bra done;\n"
	"mul.wide.u32 %d4, %r6, 4;\nadd.u64 %d1, %d1, %d4;\nadd.u64 %d2, %d2, %d4;\nadd.u64 %d3, %d3, %d4;\n"
	"ld.global.u32 %r1, [%d1];\nld.global.u32 %r7, [%d2];\nadd.u32 %r1, %r1, %r7;\nst.global.u32 [%d3], %r1;\n"
	"done:\nret;\n}\n";

const void *image_fatbin(void)
{
	static struct {
		uint32_t magic;
		uint16_t version, header_size;
		uint64_t size;
		uint16_t kind, one;
		uint32_t entry_size;
		uint64_t payload_size;
		uint32_t packed, zero;
		uint16_t minor, major;
		uint32_t arch, name_offset, name_size;
		uint64_t flags, none, unpacked;
		char payload[(sizeof kernels + 7) / 8 * 8];
	} fatbin = {.magic = 0xba55ed50, .version = 1, .header_size = 16, .kind = 1, .one = 1, .entry_size = 64, .major = 6, .arch = 50,
		    .payload_size = sizeof fatbin.payload, .size = 64 + sizeof fatbin.payload};

	memcpy(fatbin.payload, kernels, sizeof kernels);
	return &fatbin;
}

const void *image_wrapper(void)
{
	static struct {
		uint32_t magic, version;
		const void *data, *none;
	} wrapper = {.magic = 0x466243b1, .version = 1};

	wrapper.data = image_fatbin();
	return &wrapper;
}
