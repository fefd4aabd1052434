package libdevice

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// instructions returns the functions that are one instruction of PTX.
func instructions() map[string]string {
	all := map[string]string{
		"abs": "abs.s32", "llabs": "abs.s64", "brev": "brev.b32", "brevll": "brev.b64", "clz": "clz.b32", "clzll": "clz.b64",
		"popc": "popc.b32", "popcll": "popc.b64", "byte_perm": "prmt.b32", "mul24": "mul24.lo.s32", "umul24": "mul24.lo.u32",
		"mulhi": "mul.hi.s32", "umulhi": "mul.hi.u32", "mul64hi": "mul.hi.s64", "umul64hi": "mul.hi.u64", "sad": "sad.s32", "usad": "sad.u32",
		"max": "max.s32", "umax": "max.u32", "llmax": "max.s64", "ullmax": "max.u64",
		"min": "min.s32", "umin": "min.u32", "llmin": "min.s64", "ullmin": "min.u64",
		"fabs": "abs.f64", "fabsf": "abs.f32", "fmax": "max.f64", "fmaxf": "max.f32", "fmin": "min.f64", "fminf": "min.f32",
		"fma": "fma.rn.f64", "fmaf": "fma.rn.f32", "sqrt": "sqrt.rn.f64", "sqrtf": "sqrt.rn.f32", "saturatef": "cvt.sat.f32.f32",
		"rsqrtf": "rsqrt.approx.f32", "rcp64h": "rcp.approx.ftz.f64",
		"fast_sinf": "sin.approx.f32", "fast_cosf": "cos.approx.f32", "fast_log2f": "lg2.approx.f32", "log2f": "lg2.approx.f32", "exp2f": "ex2.approx.f32", "fast_fdividef": "div.approx.f32",
		"double_as_longlong": "mov.b64", "longlong_as_double": "mov.b64", "float_as_int": "mov.b32", "float_as_uint": "mov.b32",
		"int_as_float": "mov.b32", "uint_as_float": "mov.b32",
		"float2half_rn": "cvt.rn.f16.f32", "half2float": "cvt.f32.f16",
		"int2double_rn": "cvt.rn.f64.s32", "uint2double_rn": "cvt.rn.f64.u32",
	}
	for name, mode := range map[string]string{"ceil": "rpi", "floor": "rmi", "trunc": "rzi", "rint": "rni", "nearbyint": "rni"} {
		all[name], all[name+"f"] = "cvt."+mode+".f64.f64", "cvt."+mode+".f32.f32"
	}
	for suffix, mode := range map[string]string{"_rd": "rm", "_rn": "rn", "_ru": "rp", "_rz": "rz"} {
		rounded(all, suffix, mode)
	}
	return all
}

// rounded adds the functions that exist for each rounding mode.
func rounded(all map[string]string, suffix, mode string) {
	for letter, typ := range map[string]string{"f": "f32", "d": "f64"} {
		for _, op := range []string{"add", "sub", "mul", "div", "rcp", "sqrt"} {
			all[letter+op+suffix] = op + "." + mode + "." + typ
		}
	}
	all["fma"+suffix] = "fma." + mode + ".f64"
	all["fmaf"+suffix], all["fmaf_ieee"+suffix] = "fma."+mode+".f32", "fma."+mode+".f32"
	all["double2float"+suffix] = "cvt." + mode + ".f32.f64"
	for name, typ := range map[string]string{"int": "s32", "uint": "u32", "ll": "s64", "ull": "u64"} {
		all["float2"+name+suffix], all["double2"+name+suffix] = "cvt."+mode+"i."+typ+".f32", "cvt."+mode+"i."+typ+".f64"
		all[name+"2float"+suffix] = "cvt." + mode + ".f32." + typ
		if len(name) < 4 && name != "int" { // every int is exact as a double
			all[name+"2double"+suffix] = "cvt." + mode + ".f64." + typ
		}
	}
}

// operation returns the operation of an instruction.
func operation(instruction string) ops.Operation {
	part := strings.Split(instruction, ".")
	if o, ok := ops.Find(part[0], part[1:]...); ok {
		return o
	}
	if v, ok := ops.FindConversion(part[1:]); ok && part[0] == "cvt" {
		return ops.Operation{Name: instruction, Loop: conversion(v)}
	}
	panic(fmt.Sprintf("no operation for %s", instruction)) // all functions' operations are looked up at initialization
}

func conversion(v ops.Conversion) any {
	switch to, from := v.To.Size(), v.From.Size(); {
	case to == 8 && from == 8:
		return func(d, a []uint64) {
			for i := range d {
				d[i] = v.Convert(a[i])
			}
		}
	case to == 8:
		return func(d []uint64, a []uint32) {
			for i := range d {
				d[i] = v.Convert(uint64(a[i]))
			}
		}
	case from == 8:
		return func(d []uint32, a []uint64) {
			for i := range d {
				d[i] = uint32(v.Convert(a[i]))
			}
		}
	}
	return func(d, a []uint32) {
		for i := range d {
			d[i] = uint32(v.Convert(uint64(a[i])))
		}
	}
}
