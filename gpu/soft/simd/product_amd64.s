#include "textflag.h"

// The functions of product_amd64.go.

DATA quiet32<>+0(SB)/4, $0x7fffffff // NaN
GLOBL quiet32<>(SB), RODATA|NOPTR, $4
DATA upper16<>+0(SB)/4, $0xffff0000
GLOBL upper16<>(SB), RODATA|NOPTR, $4
DATA lower16<>+0(SB)/4, $0x0000ffff
GLOBL lower16<>(SB), RODATA|NOPTR, $4
DATA tf32<>+0(SB)/4, $0xffffe000 // the bits of a tf32
GLOBL tf32<>(SB), RODATA|NOPTR, $4
DATA units<>+0(SB)/8, $0x4338000000000000 // 1.5 * 2^52: the low bits of a sum with it are an integer
GLOBL units<>(SB), RODATA|NOPTR, $8

// SINGLES stores the eight f32 of a register, of which X is the lower half, as f64.
#define SINGLES(Y, X, at) \
	VCVTPS2PD    X, Y12;     \
	VEXTRACTF128 $1, Y, X13; \
	VCVTPS2PD    X13, Y13;   \
	VMOVUPD      Y12, at(DI); \
	VMOVUPD      Y13, (at+32)(DI)

// INTEGERS stores the eight integers of a register as SINGLES does.
#define INTEGERS(Y, X, at) \
	VCVTDQ2PD    X, Y12;     \
	VEXTRACTI128 $1, Y, X13; \
	VCVTDQ2PD    X13, Y13;   \
	VMOVUPD      Y12, at(DI); \
	VMOVUPD      Y13, (at+32)(DI)

// ROWS begins a function that converts eight rows.
#define ROWS \
	MOVQ d+0(FP), DI;     \
	MOVQ pitch+8(FP), DX; \
	MOVQ r+16(FP), SI;    \
	MOVQ $8, CX

// COLUMNS begins a function that converts eight columns, each of four adjacent words,
// and transposes them: Y4 to Y7 have the words of one depth each, those of the even
// columns in the lower half.
#define COLUMNS \
	MOVQ      d+0(FP), DI;   \
	MOVQ      r+8(FP), SI;   \
	VMOVUPS   (SI), Y0;      \
	VMOVUPS   32(SI), Y1;    \
	VMOVUPS   64(SI), Y2;    \
	VMOVUPS   96(SI), Y3;    \
	VUNPCKLPS Y1, Y0, Y8;    \
	VUNPCKLPS Y3, Y2, Y9;    \
	VUNPCKHPS Y1, Y0, Y10;   \
	VUNPCKHPS Y3, Y2, Y11;   \
	VUNPCKLPD Y9, Y8, Y4;    \
	VUNPCKHPD Y9, Y8, Y5;    \
	VUNPCKLPD Y11, Y10, Y6;  \
	VUNPCKHPD Y11, Y10, Y7

// HALVES stores two f16 of each word, in two steps of the depth.
#define HALVES(Y, at) \
	VANDPS       Y, Y14, Y0;   \
	VPSRLD       $16, Y, Y1;   \
	VPACKUSDW    Y1, Y0, Y0;   \
	VEXTRACTI128 $1, Y0, X1;   \
	VCVTPH2PS    X0, Y0;       \
	VCVTPH2PS    X1, Y1;       \
	VCVTPS2PD    X0, Y2;       \
	VEXTRACTF128 $1, Y0, X0;   \
	VCVTPS2PD    X0, Y0;       \
	VCVTPS2PD    X1, Y3;       \
	VEXTRACTF128 $1, Y1, X1;   \
	VCVTPS2PD    X1, Y1;       \
	VMOVUPD      Y2, at(DI);   \
	VMOVUPD      Y3, (at+32)(DI); \
	VMOVUPD      Y0, (at+64)(DI); \
	VMOVUPD      Y1, (at+96)(DI)

// BRAINS is HALVES for bf16.
#define BRAINS(Y, at) \
	VPSLLD $16, Y, Y0;    \
	VANDPS Y, Y14, Y1;    \
	SINGLES(Y0, X0, at);  \
	SINGLES(Y1, X1, (at+64))

// BYTE stores one byte of each word, after a shift to the left, as a number.
#define BYTE(shift, Y, left, at) \
	VPSLLD $left, Y, Y0; \
	shift  $24, Y0, Y0;  \
	INTEGERS(Y0, X0, at)

#define BYTES(shift, Y, at) \
	BYTE(shift, Y, 24, at);       \
	BYTE(shift, Y, 16, (at+64));  \
	BYTE(shift, Y, 8, (at+128));  \
	BYTE(shift, Y, 0, (at+192))

// DOUBLES transposes four columns, which are at from and 64, 128 and 192 bytes later.
#define DOUBLES(from, at) \
	VMOVUPD    from(SI), Y0;        \
	VMOVUPD    (from+64)(SI), Y1;   \
	VMOVUPD    (from+128)(SI), Y2;  \
	VMOVUPD    (from+192)(SI), Y3;  \
	VUNPCKLPD  Y1, Y0, Y4;          \
	VUNPCKHPD  Y1, Y0, Y5;          \
	VUNPCKLPD  Y3, Y2, Y6;          \
	VUNPCKHPD  Y3, Y2, Y7;          \
	VPERM2F128 $0x20, Y6, Y4, Y0;   \
	VPERM2F128 $0x20, Y7, Y5, Y1;   \
	VPERM2F128 $0x31, Y6, Y4, Y2;   \
	VPERM2F128 $0x31, Y7, Y5, Y3;   \
	VMOVUPD    Y0, at(DI);          \
	VMOVUPD    Y1, (at+64)(DI);     \
	VMOVUPD    Y2, (at+128)(DI);    \
	VMOVUPD    Y3, (at+192)(DI)

// BEGIN512 begins a function of 8 rows and 8 columns with AVX-512, and DEPTH512 adds the
// products of the depth to the rows in Z0 to Z7.
#define BEGIN512 \
	MOVQ c0+16(FP), R10;    \
	MOVQ c1+24(FP), R11;    \
	MOVQ a+32(FP), R8;      \
	MOVQ pitch+40(FP), DX;  \
	MOVQ b+48(FP), BX;      \
	MOVQ k+56(FP), CX;      \
	LEAQ (DX)(DX*2), R12;   \
	LEAQ (R8)(DX*4), R9

#define DEPTH512 \
depth: \
	VMOVUPD          (BX), Z8;                  \
	VFMADD231PD.BCST (R8), Z8, Z0;              \
	VFMADD231PD.BCST (R8)(DX*1), Z8, Z1;        \
	VFMADD231PD.BCST (R8)(DX*2), Z8, Z2;        \
	VFMADD231PD.BCST (R8)(R12*1), Z8, Z3;       \
	VFMADD231PD.BCST (R9), Z8, Z4;              \
	VFMADD231PD.BCST (R9)(DX*1), Z8, Z5;        \
	VFMADD231PD.BCST (R9)(DX*2), Z8, Z6;        \
	VFMADD231PD.BCST (R9)(R12*1), Z8, Z7;       \
	ADDQ             $64, BX;                   \
	ADDQ             $8, R8;                    \
	ADDQ             $8, R9;                    \
	DECQ             CX;                        \
	JNZ              depth;                     \
	MOVQ             d0+0(FP), DI;              \
	MOVQ             d1+8(FP), SI

// func addProducts(d0, d1, c0, c1, a *float64, pitch int, b *float64, k int)
TEXT ·addProducts(SB), NOSPLIT, $0-64
	MOVQ d0+0(FP), DI
	MOVQ d1+8(FP), SI
	MOVQ c0+16(FP), R10
	MOVQ c1+24(FP), R11
	MOVQ a+32(FP), R8
	MOVQ pitch+40(FP), DX
	MOVQ $2, AX

rows:
	VMOVUPD (R10), Y0
	VMOVUPD (R11), Y1
	VMOVUPD 32(R10), Y2
	VMOVUPD 32(R11), Y3
	VMOVUPD 64(R10), Y4
	VMOVUPD 64(R11), Y5
	VMOVUPD 96(R10), Y6
	VMOVUPD 96(R11), Y7
	LEAQ    (R8)(DX*2), R9
	LEAQ    (R9)(DX*2), R12
	MOVQ    b+48(FP), BX
	MOVQ    k+56(FP), CX

depth:
	VMOVUPD      (BX), Y8
	VMOVUPD      32(BX), Y9
	VBROADCASTSD (R8), Y10
	VFMADD231PD  Y8, Y10, Y0
	VFMADD231PD  Y9, Y10, Y1
	VBROADCASTSD (R8)(DX*1), Y11
	VFMADD231PD  Y8, Y11, Y2
	VFMADD231PD  Y9, Y11, Y3
	VBROADCASTSD (R9), Y12
	VFMADD231PD  Y8, Y12, Y4
	VFMADD231PD  Y9, Y12, Y5
	VBROADCASTSD (R9)(DX*1), Y13
	VFMADD231PD  Y8, Y13, Y6
	VFMADD231PD  Y9, Y13, Y7
	ADDQ         $64, BX
	ADDQ         $8, R8
	ADDQ         $8, R9
	DECQ         CX
	JNZ          depth
	VMOVUPD      Y0, (DI)
	VMOVUPD      Y1, (SI)
	VMOVUPD      Y2, 32(DI)
	VMOVUPD      Y3, 32(SI)
	VMOVUPD      Y4, 64(DI)
	VMOVUPD      Y5, 64(SI)
	VMOVUPD      Y6, 96(DI)
	VMOVUPD      Y7, 96(SI)
	ADDQ         $128, DI
	ADDQ         $128, SI
	ADDQ         $128, R10
	ADDQ         $128, R11
	MOVQ         R12, R8
	DECQ         AX
	JNZ          rows
	VZEROUPPER
	RET

// func addProducts512(d0, d1, c0, c1 *float64, a *float64, pitch int, b *float64, k int)
TEXT ·addProducts512(SB), NOSPLIT, $0-64
	BEGIN512
	VMOVUPD      0(R10), Y0
	VINSERTF64X4 $1, 0(R11), Z0, Z0
	VMOVUPD      32(R10), Y1
	VINSERTF64X4 $1, 32(R11), Z1, Z1
	VMOVUPD      64(R10), Y2
	VINSERTF64X4 $1, 64(R11), Z2, Z2
	VMOVUPD      96(R10), Y3
	VINSERTF64X4 $1, 96(R11), Z3, Z3
	VMOVUPD      128(R10), Y4
	VINSERTF64X4 $1, 128(R11), Z4, Z4
	VMOVUPD      160(R10), Y5
	VINSERTF64X4 $1, 160(R11), Z5, Z5
	VMOVUPD      192(R10), Y6
	VINSERTF64X4 $1, 192(R11), Z6, Z6
	VMOVUPD      224(R10), Y7
	VINSERTF64X4 $1, 224(R11), Z7, Z7
	DEPTH512
	VMOVUPD       Y0, 0(DI)
	VEXTRACTF64X4 $1, Z0, 0(SI)
	VMOVUPD       Y1, 32(DI)
	VEXTRACTF64X4 $1, Z1, 32(SI)
	VMOVUPD       Y2, 64(DI)
	VEXTRACTF64X4 $1, Z2, 64(SI)
	VMOVUPD       Y3, 96(DI)
	VEXTRACTF64X4 $1, Z3, 96(SI)
	VMOVUPD       Y4, 128(DI)
	VEXTRACTF64X4 $1, Z4, 128(SI)
	VMOVUPD       Y5, 160(DI)
	VEXTRACTF64X4 $1, Z5, 160(SI)
	VMOVUPD       Y6, 192(DI)
	VEXTRACTF64X4 $1, Z6, 192(SI)
	VMOVUPD       Y7, 224(DI)
	VEXTRACTF64X4 $1, Z7, 224(SI)
	VZEROUPPER
	RET

// func addSingles512(d0, d1, c0, c1 *[32]uint32, a *float64, pitch int, b *float64, k int)
TEXT ·addSingles512(SB), NOSPLIT, $0-64
	BEGIN512
	VMOVUPS     0(R10), X0
	VINSERTF128 $1, 0(R11), Y0, Y0
	VCVTPS2PD   Y0, Z0
	VMOVUPS     16(R10), X1
	VINSERTF128 $1, 16(R11), Y1, Y1
	VCVTPS2PD   Y1, Z1
	VMOVUPS     32(R10), X2
	VINSERTF128 $1, 32(R11), Y2, Y2
	VCVTPS2PD   Y2, Z2
	VMOVUPS     48(R10), X3
	VINSERTF128 $1, 48(R11), Y3, Y3
	VCVTPS2PD   Y3, Z3
	VMOVUPS     64(R10), X4
	VINSERTF128 $1, 64(R11), Y4, Y4
	VCVTPS2PD   Y4, Z4
	VMOVUPS     80(R10), X5
	VINSERTF128 $1, 80(R11), Y5, Y5
	VCVTPS2PD   Y5, Z5
	VMOVUPS     96(R10), X6
	VINSERTF128 $1, 96(R11), Y6, Y6
	VCVTPS2PD   Y6, Z6
	VMOVUPS     112(R10), X7
	VINSERTF128 $1, 112(R11), Y7, Y7
	VCVTPS2PD   Y7, Z7
	DEPTH512
	VBROADCASTSS quiet32<>(SB), Y10
	VCVTPD2PS    Z0, Y0
	VCMPPS       $3, Y0, Y0, Y9
	VBLENDVPS    Y9, Y10, Y0, Y0
	VMOVUPS      X0, 0(DI)
	VEXTRACTF128 $1, Y0, 0(SI)
	VCVTPD2PS    Z1, Y1
	VCMPPS       $3, Y1, Y1, Y9
	VBLENDVPS    Y9, Y10, Y1, Y1
	VMOVUPS      X1, 16(DI)
	VEXTRACTF128 $1, Y1, 16(SI)
	VCVTPD2PS    Z2, Y2
	VCMPPS       $3, Y2, Y2, Y9
	VBLENDVPS    Y9, Y10, Y2, Y2
	VMOVUPS      X2, 32(DI)
	VEXTRACTF128 $1, Y2, 32(SI)
	VCVTPD2PS    Z3, Y3
	VCMPPS       $3, Y3, Y3, Y9
	VBLENDVPS    Y9, Y10, Y3, Y3
	VMOVUPS      X3, 48(DI)
	VEXTRACTF128 $1, Y3, 48(SI)
	VCVTPD2PS    Z4, Y4
	VCMPPS       $3, Y4, Y4, Y9
	VBLENDVPS    Y9, Y10, Y4, Y4
	VMOVUPS      X4, 64(DI)
	VEXTRACTF128 $1, Y4, 64(SI)
	VCVTPD2PS    Z5, Y5
	VCMPPS       $3, Y5, Y5, Y9
	VBLENDVPS    Y9, Y10, Y5, Y5
	VMOVUPS      X5, 80(DI)
	VEXTRACTF128 $1, Y5, 80(SI)
	VCVTPD2PS    Z6, Y6
	VCMPPS       $3, Y6, Y6, Y9
	VBLENDVPS    Y9, Y10, Y6, Y6
	VMOVUPS      X6, 96(DI)
	VEXTRACTF128 $1, Y6, 96(SI)
	VCVTPD2PS    Z7, Y7
	VCMPPS       $3, Y7, Y7, Y9
	VBLENDVPS    Y9, Y10, Y7, Y7
	VMOVUPS      X7, 112(DI)
	VEXTRACTF128 $1, Y7, 112(SI)
	VZEROUPPER
	RET

// func addIntegers512(d0, d1, c0, c1 *[32]uint32, a *float64, pitch int, b *float64, k int)
TEXT ·addIntegers512(SB), NOSPLIT, $0-64
	BEGIN512
	VMOVDQU     0(R10), X0
	VINSERTI128 $1, 0(R11), Y0, Y0
	VCVTDQ2PD   Y0, Z0
	VMOVDQU     16(R10), X1
	VINSERTI128 $1, 16(R11), Y1, Y1
	VCVTDQ2PD   Y1, Z1
	VMOVDQU     32(R10), X2
	VINSERTI128 $1, 32(R11), Y2, Y2
	VCVTDQ2PD   Y2, Z2
	VMOVDQU     48(R10), X3
	VINSERTI128 $1, 48(R11), Y3, Y3
	VCVTDQ2PD   Y3, Z3
	VMOVDQU     64(R10), X4
	VINSERTI128 $1, 64(R11), Y4, Y4
	VCVTDQ2PD   Y4, Z4
	VMOVDQU     80(R10), X5
	VINSERTI128 $1, 80(R11), Y5, Y5
	VCVTDQ2PD   Y5, Z5
	VMOVDQU     96(R10), X6
	VINSERTI128 $1, 96(R11), Y6, Y6
	VCVTDQ2PD   Y6, Z6
	VMOVDQU     112(R10), X7
	VINSERTI128 $1, 112(R11), Y7, Y7
	VCVTDQ2PD   Y7, Z7
	DEPTH512
	VBROADCASTSD units<>(SB), Z10
	VADDPD       Z10, Z0, Z0
	VPMOVQD      Z0, Y0
	VMOVDQU      X0, 0(DI)
	VEXTRACTI128 $1, Y0, 0(SI)
	VADDPD       Z10, Z1, Z1
	VPMOVQD      Z1, Y1
	VMOVDQU      X1, 16(DI)
	VEXTRACTI128 $1, Y1, 16(SI)
	VADDPD       Z10, Z2, Z2
	VPMOVQD      Z2, Y2
	VMOVDQU      X2, 32(DI)
	VEXTRACTI128 $1, Y2, 32(SI)
	VADDPD       Z10, Z3, Z3
	VPMOVQD      Z3, Y3
	VMOVDQU      X3, 48(DI)
	VEXTRACTI128 $1, Y3, 48(SI)
	VADDPD       Z10, Z4, Z4
	VPMOVQD      Z4, Y4
	VMOVDQU      X4, 64(DI)
	VEXTRACTI128 $1, Y4, 64(SI)
	VADDPD       Z10, Z5, Z5
	VPMOVQD      Z5, Y5
	VMOVDQU      X5, 80(DI)
	VEXTRACTI128 $1, Y5, 80(SI)
	VADDPD       Z10, Z6, Z6
	VPMOVQD      Z6, Y6
	VMOVDQU      X6, 96(DI)
	VEXTRACTI128 $1, Y6, 96(SI)
	VADDPD       Z10, Z7, Z7
	VPMOVQD      Z7, Y7
	VMOVDQU      X7, 112(DI)
	VEXTRACTI128 $1, Y7, 112(SI)
	VZEROUPPER
	RET

// func addQuads(d0, d1, a, b, c0, c1 *[32]uint64, old *float64) bool
TEXT ·addQuads(SB), NOSPLIT, $0-57
	MOVQ         d0+0(FP), DI
	MOVQ         d1+8(FP), R8
	MOVQ         a+16(FP), DX
	MOVQ         b+24(FP), SI
	MOVQ         c0+32(FP), R10
	MOVQ         c1+40(FP), R11
	MOVQ         old+48(FP), BX
	MOVQ         $4, CX
	VMOVUPD      0(SI), Y8
	VMOVUPD      64(SI), Y9
	VMOVUPD      128(SI), Y10
	VMOVUPD      192(SI), Y11
	VUNPCKLPD    Y9, Y8, Y12
	VUNPCKHPD    Y9, Y8, Y13
	VUNPCKLPD    Y11, Y10, Y14
	VUNPCKHPD    Y11, Y10, Y15
	VPERM2F128   $0x20, Y14, Y12, Y0
	VPERM2F128   $0x20, Y15, Y13, Y2
	VPERM2F128   $0x31, Y14, Y12, Y4
	VPERM2F128   $0x31, Y15, Y13, Y6
	VMOVUPD      32(SI), Y8
	VMOVUPD      96(SI), Y9
	VMOVUPD      160(SI), Y10
	VMOVUPD      224(SI), Y11
	VUNPCKLPD    Y9, Y8, Y12
	VUNPCKHPD    Y9, Y8, Y13
	VUNPCKLPD    Y11, Y10, Y14
	VUNPCKHPD    Y11, Y10, Y15
	VPERM2F128   $0x20, Y14, Y12, Y1
	VPERM2F128   $0x20, Y15, Y13, Y3
	VPERM2F128   $0x31, Y14, Y12, Y5
	VPERM2F128   $0x31, Y15, Y13, Y7
	VXORPD       Y15, Y15, Y15

rows:
	VMOVUPD      (R10), Y8
	VMOVUPD      (R11), Y9
	VMOVUPD      32(R10), Y10
	VMOVUPD      32(R11), Y11
	VMOVUPD      Y8, (BX)
	VMOVUPD      Y9, 256(BX)
	VMOVUPD      Y10, 32(BX)
	VMOVUPD      Y11, 288(BX)
	VBROADCASTSD 0(DX), Y12
	VBROADCASTSD 32(DX), Y13
	VFMADD231PD  Y0, Y12, Y8
	VFMADD231PD  Y1, Y12, Y9
	VFMADD231PD  Y0, Y13, Y10
	VFMADD231PD  Y1, Y13, Y11
	VBROADCASTSD 8(DX), Y12
	VBROADCASTSD 40(DX), Y13
	VFMADD231PD  Y2, Y12, Y8
	VFMADD231PD  Y3, Y12, Y9
	VFMADD231PD  Y2, Y13, Y10
	VFMADD231PD  Y3, Y13, Y11
	VBROADCASTSD 16(DX), Y12
	VBROADCASTSD 48(DX), Y13
	VFMADD231PD  Y4, Y12, Y8
	VFMADD231PD  Y5, Y12, Y9
	VFMADD231PD  Y4, Y13, Y10
	VFMADD231PD  Y5, Y13, Y11
	VBROADCASTSD 24(DX), Y12
	VBROADCASTSD 56(DX), Y13
	VFMADD231PD  Y6, Y12, Y8
	VFMADD231PD  Y7, Y12, Y9
	VFMADD231PD  Y6, Y13, Y10
	VFMADD231PD  Y7, Y13, Y11
	VCMPPD       $3, Y8, Y9, Y12
	VCMPPD       $3, Y10, Y11, Y13
	VORPD        Y12, Y15, Y15
	VORPD        Y13, Y15, Y15
	VMOVUPD      Y8, (DI)
	VMOVUPD      Y9, (R8)
	VMOVUPD      Y10, 32(DI)
	VMOVUPD      Y11, 32(R8)
	ADDQ         $64, DI
	ADDQ         $64, R8
	ADDQ         $64, R10
	ADDQ         $64, R11
	ADDQ         $64, DX
	ADDQ         $64, BX
	DECQ         CX
	JNZ          rows
	VMOVMSKPD    Y15, AX
	TESTL        AX, AX
	SETNE        ret+56(FP)
	VZEROUPPER
	RET

// func unordered(v *float64, n int) bool
TEXT ·unordered(SB), NOSPLIT, $0-17
	MOVQ  v+0(FP), SI
	MOVQ  n+8(FP), CX
	VXORPD Y2, Y2, Y2

more:
	VMOVUPD (SI), Y0
	VCMPPD  $3, Y0, Y0, Y1
	VORPD   Y1, Y2, Y2
	VMOVUPD 32(SI), Y0
	VCMPPD  $3, Y0, Y0, Y1
	VORPD   Y1, Y2, Y2
	ADDQ    $64, SI
	SUBQ    $8, CX
	JNZ     more
	VMOVMSKPD Y2, AX
	TESTL   AX, AX
	SETNE   ret+16(FP)
	VZEROUPPER
	RET

// func halfRows(d *float64, pitch int, r *[32]uint32)
TEXT ·halfRows(SB), NOSPLIT, $0-24
	ROWS

row:
	VCVTPH2PS (SI), Y0
	SINGLES(Y0, X0, 0)
	ADDQ $16, SI
	ADDQ DX, DI
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

// func brainRows(d *float64, pitch int, r *[32]uint32)
TEXT ·brainRows(SB), NOSPLIT, $0-24
	ROWS

row:
	VPMOVZXWD (SI), Y0
	VPSLLD    $16, Y0, Y0
	SINGLES(Y0, X0, 0)
	ADDQ $16, SI
	ADDQ DX, DI
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

// func singleRows(d *float64, pitch int, r *[32]uint32)
TEXT ·singleRows(SB), NOSPLIT, $0-24
	ROWS
	VBROADCASTSS tf32<>(SB), X1

row:
	VANDPS    (SI), X1, X0
	VCVTPS2PD X0, Y0
	VMOVUPD   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      DX, DI
	DECQ      CX
	JNZ       row
	VZEROUPPER
	RET

// func signedRows(d *float64, pitch int, r *[32]uint32)
TEXT ·signedRows(SB), NOSPLIT, $0-24
	ROWS

row:
	VPMOVSXBD (SI), Y0
	VPMOVSXBD 8(SI), Y1
	INTEGERS(Y0, X0, 0)
	INTEGERS(Y1, X1, 64)
	ADDQ $16, SI
	ADDQ DX, DI
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

// func unsignedRows(d *float64, pitch int, r *[32]uint32)
TEXT ·unsignedRows(SB), NOSPLIT, $0-24
	ROWS

row:
	VPMOVZXBD (SI), Y0
	VPMOVZXBD 8(SI), Y1
	INTEGERS(Y0, X0, 0)
	INTEGERS(Y1, X1, 64)
	ADDQ $16, SI
	ADDQ DX, DI
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

// func doubleRows(d *float64, pitch int, r *[32]uint64)
TEXT ·doubleRows(SB), NOSPLIT, $0-24
	ROWS

row:
	VMOVUPD (SI), Y0
	VMOVUPD Y0, (DI)
	ADDQ    $32, SI
	ADDQ    DX, DI
	DECQ    CX
	JNZ     row
	VZEROUPPER
	RET

// func halfColumns(d *float64, r *[32]uint32)
TEXT ·halfColumns(SB), NOSPLIT, $0-16
	COLUMNS
	VBROADCASTSS lower16<>(SB), Y14
	HALVES(Y4, 0)
	HALVES(Y5, 128)
	HALVES(Y6, 256)
	HALVES(Y7, 384)
	VZEROUPPER
	RET

// func brainColumns(d *float64, r *[32]uint32)
TEXT ·brainColumns(SB), NOSPLIT, $0-16
	COLUMNS
	VBROADCASTSS upper16<>(SB), Y14
	BRAINS(Y4, 0)
	BRAINS(Y5, 128)
	BRAINS(Y6, 256)
	BRAINS(Y7, 384)
	VZEROUPPER
	RET

// func singleColumns(d *float64, r *[32]uint32)
TEXT ·singleColumns(SB), NOSPLIT, $0-16
	COLUMNS
	VBROADCASTSS tf32<>(SB), Y14
	VANDPS Y4, Y14, Y4
	VANDPS Y5, Y14, Y5
	VANDPS Y6, Y14, Y6
	VANDPS Y7, Y14, Y7
	SINGLES(Y4, X4, 0)
	SINGLES(Y5, X5, 64)
	SINGLES(Y6, X6, 128)
	SINGLES(Y7, X7, 192)
	VZEROUPPER
	RET

// func signedColumns(d *float64, r *[32]uint32)
TEXT ·signedColumns(SB), NOSPLIT, $0-16
	COLUMNS
	BYTES(VPSRAD, Y4, 0)
	BYTES(VPSRAD, Y5, 256)
	BYTES(VPSRAD, Y6, 512)
	BYTES(VPSRAD, Y7, 768)
	VZEROUPPER
	RET

// func unsignedColumns(d *float64, r *[32]uint32)
TEXT ·unsignedColumns(SB), NOSPLIT, $0-16
	COLUMNS
	BYTES(VPSRLD, Y4, 0)
	BYTES(VPSRLD, Y5, 256)
	BYTES(VPSRLD, Y6, 512)
	BYTES(VPSRLD, Y7, 768)
	VZEROUPPER
	RET

// func doubleColumns(d *float64, r *[32]uint64)
TEXT ·doubleColumns(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ r+8(FP), SI
	DOUBLES(0, 0)
	DOUBLES(32, 32)
	VZEROUPPER
	RET

// func widenSingles(d *float64, r *[32]uint32)
TEXT ·widenSingles(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ r+8(FP), SI
	MOVQ $8, CX

four:
	VCVTPS2PD (SI), Y0
	VMOVUPD   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       four
	VZEROUPPER
	RET

// func widenIntegers(d *float64, r *[32]uint32)
TEXT ·widenIntegers(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ r+8(FP), SI
	MOVQ $8, CX

four:
	VCVTDQ2PD (SI), Y0
	VMOVUPD   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       four
	VZEROUPPER
	RET

// func narrowSingles(d *[32]uint32, v *float64)
TEXT ·narrowSingles(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ v+8(FP), SI
	MOVQ $8, CX
	VBROADCASTSS quiet32<>(SB), X2

four:
	VCVTPD2PSY (SI), X0
	VCMPPS     $3, X0, X0, X1
	VBLENDVPS  X1, X2, X0, X0
	VMOVUPS    X0, (DI)
	ADDQ       $32, SI
	ADDQ       $16, DI
	DECQ       CX
	JNZ        four
	VZEROUPPER
	RET

// func narrowIntegers(d *[32]uint32, v *float64)
TEXT ·narrowIntegers(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DI
	MOVQ v+8(FP), SI
	MOVQ $8, CX
	VBROADCASTSD units<>(SB), Y2

four:
	VADDPD       (SI), Y2, Y0
	VEXTRACTF128 $1, Y0, X1
	VSHUFPS      $0x88, X1, X0, X0
	VMOVUPS      X0, (DI)
	ADDQ         $32, SI
	ADDQ         $16, DI
	DECQ         CX
	JNZ          four
	VZEROUPPER
	RET

// func copyStripe16(d *[32]uint32, from *byte, distance int)
TEXT ·copyStripe16(SB), NOSPLIT, $0-24
	MOVQ d+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ distance+16(FP), DX
	LEAQ (DX)(DX*2), R8
	LEAQ (SI)(DX*4), R9
	VMOVDQU (SI), X0
	VMOVDQU (SI)(DX*1), X1
	VMOVDQU (SI)(DX*2), X2
	VMOVDQU (SI)(R8*1), X3
	VMOVDQU (R9), X4
	VMOVDQU (R9)(DX*1), X5
	VMOVDQU (R9)(DX*2), X6
	VMOVDQU (R9)(R8*1), X7
	VMOVDQU X0, (DI)
	VMOVDQU X1, 16(DI)
	VMOVDQU X2, 32(DI)
	VMOVDQU X3, 48(DI)
	VMOVDQU X4, 64(DI)
	VMOVDQU X5, 80(DI)
	VMOVDQU X6, 96(DI)
	VMOVDQU X7, 112(DI)
	RET

// func copyStripe32(d *[32]uint64, from *byte, distance int)
TEXT ·copyStripe32(SB), NOSPLIT, $0-24
	MOVQ d+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ distance+16(FP), DX
	LEAQ (DX)(DX*2), R8
	LEAQ (SI)(DX*4), R9
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(DX*1), Y1
	VMOVDQU (SI)(DX*2), Y2
	VMOVDQU (SI)(R8*1), Y3
	VMOVDQU (R9), Y4
	VMOVDQU (R9)(DX*1), Y5
	VMOVDQU (R9)(DX*2), Y6
	VMOVDQU (R9)(R8*1), Y7
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVDQU Y4, 128(DI)
	VMOVDQU Y5, 160(DI)
	VMOVDQU Y6, 192(DI)
	VMOVDQU Y7, 224(DI)
	VZEROUPPER
	RET
