package main

import (
	"fmt"
	"strings"
)

// variants returns the suffixes of the operations that a line with flags defines, as in
// ops.txt: F adds .ftz and S .sat.
func variants(flags string) []string {
	list := []string{""}
	if strings.Contains(flags, "F") {
		list = append(list, "/ftz")
	}
	if strings.Contains(flags, "S") {
		for _, v := range list[:len(list):len(list)] {
			list = append(list, v+"/sat")
		}
	}
	return list
}

// modified returns the instructions of a variant: sources of 32 bits are flushed before
// the others, and the result is saturated and flushed after them.
func (l *loop) modified(code, variant string) string {
	list := []string{code}
	flush := strings.Contains(variant, "/ftz")
	for i, w := range l.src {
		if flush && w == "32" {
			list = append([]string{l.flushed(sources[i])}, list...)
		}
	}
	if strings.Contains(variant, "/sat") { // VMAXPS returns its second operand, which is 0, for a NaN
		list = append(list, fmt.Sprintf("VXORPS t, t, t; VMAXPS t, d, d; VMINPS {%s}, d, d", l.both(0x3f800000)))
	}
	if flush && l.dst == "32" {
		list = append(list, l.flushed("d"))
	}
	return strings.Join(list, "; ")
}

// flushed returns the instructions that replace subnormal numbers of 32 bits by zeros
// of the same sign.
func (l *loop) flushed(x string) string {
	return fmt.Sprintf("VPAND {%s}, %[2]s, t; VPXOR u, u, u; VPCMPEQD u, t, t; VPAND {%[3]s}, t, t; VPANDN %[2]s, t, %[2]s",
		l.both(0x7f800000), x, l.both(0x7fffffff))
}

// both returns a constant that has a number in every 32 bits.
func (l *loop) both(v uint32) string {
	if l.lane == 64 {
		return fmt.Sprintf("%#x", uint64(v)<<32|uint64(v))
	}
	return fmt.Sprintf("%#x", v)
}
