package ops

// Operations with constants of the instruction.

// Lop3 returns lop3 with a table.
func Lop3(table uint32) Operation {
	return Operation{Name: "lop3.b32", Constants: []uint64{uint64(table)}, Loop: func(d, x, y, z []uint32) {
		for i := range d {
			d[i] = lop3(x[i], y[i], z[i], table)
		}
	}}
}

// PlusName is the name of the operations that Plus returns.
const PlusName = "plus.b64"

// Plus returns the addition of a constant.
func Plus(delta uint64) Operation {
	return Operation{Name: PlusName, Constants: []uint64{delta}, Loop: func(d, a []uint64) {
		for i := range d {
			d[i] = a[i] + delta
		}
	}}
}

// Within returns the operation that reports which values are in a range.
func Within(base, size uint64) Operation {
	return Operation{Name: "within.b64", Constants: []uint64{base, size}, Loop: func(d Predicate, a []uint64) {
		for w := range d {
			var bits uint32
			for l := range 32 {
				bits |= bit(a[w*32+l]-base < size) << l
			}
			d[w] = bits
		}
	}}
}

// Bitwise returns the operation of a bitwise instruction on predicates. For any other
// opcode it returns the first source.
func Bitwise(op string) func(a, b uint32) uint32 {
	switch op {
	case "and":
		return func(a, b uint32) uint32 { return a & b }
	case "or":
		return func(a, b uint32) uint32 { return a | b }
	case "xor":
		return func(a, b uint32) uint32 { return a ^ b }
	case "not":
		return func(a, _ uint32) uint32 { return ^a }
	}
	return func(a, _ uint32) uint32 { return a }
}
