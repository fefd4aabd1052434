package drivertest

// Kernels is the suite's PTX image. A driver that does not execute PTX provides
// an image of its own with the kernels store, delay and fault.
//
//	store(u64 address, u64 value)             writes value
//	delay(u64 address, u64 value, u64 loops)  takes its time, then writes value
//	fault()                                   writes to address 16
//	add(u64 a, u64 b, u64 out, u32 n)         out[i] = a[i] + b[i], of u32
const Kernels = `.version 6.0
.target sm_50
.address_size 64

.global .align 4 .u32 numbers[4] = {11, 22, 33, 44};

.visible .entry store(.param .u64 address, .param .u64 value)
{
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [address];
	ld.param.u64 %rd2, [value];
	st.global.u64 [%rd1], %rd2;
	ret;
}

.visible .entry delay(.param .u64 address, .param .u64 value, .param .u64 loops)
{
	.reg .pred %p<2>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [address];
	ld.param.u64 %rd2, [value];
	ld.param.u64 %rd3, [loops];
	mov.u64 %rd4, 0;
LOOP:
	ld.volatile.global.u64 %rd0, [%rd1];
	add.u64 %rd4, %rd4, 1;
	setp.lt.u64 %p1, %rd4, %rd3;
	@%p1 bra LOOP;
	st.global.u64 [%rd1], %rd2;
	ret;
}

.visible .entry fault()
{
	.reg .b64 %rd<2>;
	mov.u64 %rd1, 16;
	st.global.u64 [%rd1], %rd1;
	ret;
}

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u64 %rd3, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra DONE;
	mul.wide.u32 %rd4, %r5, 4;
	add.s64 %rd5, %rd1, %rd4;
	add.s64 %rd6, %rd2, %rd4;
	add.s64 %rd7, %rd3, %rd4;
	ld.global.u32 %r6, [%rd5];
	ld.global.u32 %r7, [%rd6];
	add.u32 %r8, %r6, %r7;
	st.global.u32 [%rd7], %r8;
DONE:
	ret;
}
`
