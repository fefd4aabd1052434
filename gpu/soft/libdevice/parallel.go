package libdevice

import "strings"

// Functions of the two halves or four bytes of a register (CUDA Math API, "SIMD
// Intrinsics").

// parts has two integers of a number of bits.
type parts struct {
	a, b int64
	bits uint
}

// clamped clamps a result to the range of a part.
func (p parts) clamped(x int64, signed bool) int64 {
	if signed {
		return min(max(x, -1<<(p.bits-1)), 1<<(p.bits-1)-1)
	}
	return min(max(x, 0), 1<<p.bits-1)
}

func parallel(all map[string]any, count uint) {
	suffix := string(rune('0' + count))
	add := func(name string, signed bool, f func(p parts) int64) {
		all[name+suffix] = func(x, y uint32) uint32 { return eachPart(x, y, 32/count, signed, f) }
	}
	one := func(name string, f func(p parts) int64) {
		all[name+suffix] = func(x uint32) uint32 { return eachPart(x, 0, 32/count, true, f) }
	}
	one("vabs", func(p parts) int64 { return max(p.a, -p.a) })
	one("vabsss", func(p parts) int64 { return p.clamped(max(p.a, -p.a), true) })
	one("vneg", func(p parts) int64 { return -p.a })
	one("vnegss", func(p parts) int64 { return p.clamped(-p.a, true) })
	add("vadd", false, func(p parts) int64 { return p.a + p.b })
	add("vsub", false, func(p parts) int64 { return p.a - p.b })
	add("vhaddu", false, func(p parts) int64 { return (p.a + p.b) >> 1 })
	for s, signed := range map[string]bool{"s": true, "u": false} {
		add("vadd"+s+"s", signed, func(p parts) int64 { return p.clamped(p.a+p.b, signed) })
		add("vsub"+s+"s", signed, func(p parts) int64 { return p.clamped(p.a-p.b, signed) })
		add("vabsdiff"+s, signed, func(p parts) int64 { return max(p.a-p.b, p.b-p.a) })
		add("vavg"+s, signed, average)
		add("vmax"+s, signed, func(p parts) int64 { return max(p.a, p.b) })
		add("vmin"+s, signed, func(p parts) int64 { return min(p.a, p.b) })
		all["vsad"+s+suffix] = func(x, y uint32) (sum uint32) {
			eachPart(x, y, 32/count, signed, func(p parts) int64 {
				sum += uint32(max(p.a-p.b, p.b-p.a))
				return 0
			})
			return sum
		}
	}
	comparisons(add)
}

// average returns the average, with halves rounded away from zero, as vavrg does.
func average(p parts) int64 {
	if s := p.a + p.b; s < 0 {
		return s >> 1
	}
	return (p.a + p.b + 1) >> 1
}

// comparisons adds vset…, whose result is 1, and vcmp…, whose result has all bits set.
func comparisons(add func(name string, signed bool, f func(p parts) int64)) {
	for name, f := range map[string]func(a, b int64) bool{
		"eq": func(a, b int64) bool { return a == b }, "ne": func(a, b int64) bool { return a != b },
		"ges": func(a, b int64) bool { return a >= b }, "gts": func(a, b int64) bool { return a > b },
		"les": func(a, b int64) bool { return a <= b }, "lts": func(a, b int64) bool { return a < b },
	} {
		names := []string{name}
		if strings.HasSuffix(name, "s") {
			names = append(names, name[:2]+"u")
		}
		for _, n := range names {
			signed := strings.HasSuffix(n, "s")
			add("vset"+n, signed, func(p parts) int64 { return int64(truth(f(p.a, p.b))) })
			add("vcmp"+n, signed, func(p parts) int64 { return -int64(truth(f(p.a, p.b))) })
		}
	}
}

func eachPart(x, y uint32, bits uint, signed bool, f func(p parts) int64) (d uint32) {
	part := func(x uint32, at uint) int64 {
		if signed {
			return int64(int32(x<<(32-bits-at)) >> (32 - bits))
		}
		return int64(x << (32 - bits - at) >> (32 - bits))
	}
	for at := uint(0); at < 32; at += bits {
		d |= uint32(f(parts{part(x, at), part(y, at), bits})) & (1<<bits - 1) << at
	}
	return d
}
