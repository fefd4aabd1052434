package ptx

import "strings"

// The memory of a module's tables is limited by the size of its source, because a
// few bytes can require much memory (".reg .b32 %r<65536>;"). A compiler's output
// needs some 15 to 20 bytes of tables for each byte of source.
//
// The guarantee for a module of n bytes, while basalt-worker loads it: it uses at
// most the n bytes that the guest shares, and 1.5 times (a garbage collection runs
// when there is half as much garbage as memory in use) its copy and its tables: n +
// 3/2 (n + min(8 MiB + 32 n, 192 MiB)). That is 63 n at 1 MB, 17 n at 20 MB and
// never more than 2.5 n + 288 MiB. Measured: 250 to 284 MB for 20 MB that require
// as much as possible (TestHostilePTXMemory). Programs need additional
// memory, see maxExpanded in gpu/soft/compile.
const (
	tablesBase    = 8 << 20   // bytes that any module may use
	tablesPerByte = 32        // per byte of source
	tablesMost    = 192 << 20 // bytes, of any module
)

// Approximate memory of entries of the tables, including what they point to.
const (
	costInst     = 208
	costOperand  = 136
	costRegister = 72
	costLabel    = 128
	costScope    = 1024
	costVar      = 320
	costFunc     = 512
	costReloc    = 72
)

// budget is the memory that a module's tables may still use.
type budget struct {
	source int // bytes
	left   uint64
	opcode map[string][]string // the parts of opcodes: many instructions have the same few opcodes
}

func newBudget(source int) *budget {
	return &budget{source: source, left: allowed(source), opcode: map[string][]string{}}
}

func allowed(source int) uint64 {
	return min(tablesBase+tablesPerByte*uint64(source), tablesMost)
}

// charge subtracts n bytes from the budget.
func (p *parser) charge(n uint64) error {
	if n > p.budget.left {
		return p.errorf("module too large: its registers, variables and instructions take more than %d bytes of memory, which is what %d bytes of source may take",
			allowed(p.budget.source), p.budget.source)
	}
	p.budget.left -= n
	return nil
}

// maxOpcodes is the number of opcodes that are cached; a compiler's output has
// fewer.
const maxOpcodes = 4096

// split splits an opcode at its dots. The parts are shared: they must not be
// changed.
func (b *budget) split(opcode string) []string {
	if parts := b.opcode[opcode]; parts != nil {
		return parts
	}
	opcode = strings.Clone(opcode)
	parts := strings.Split(opcode, ".")
	if len(b.opcode) < maxOpcodes {
		b.opcode[opcode] = parts
	}
	return parts
}
