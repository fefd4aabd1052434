package ptx

import "strings"

// What a module's tables take of memory is bounded by its source: a few bytes can
// ask for much (".reg .b32 %r<65536>;"). A compiler's output takes some 15 to 20
// bytes of tables for each byte of source.
//
// The promise for one of n bytes, while it is loaded by basalt-worker: it takes at
// most the n bytes that the guest shares, and one and a half times (a collection
// runs when there is half as much garbage as is in use) its copy and its tables:
// n + 3/2 (n + min(8 MiB + 32 n, 192 MiB)). That is 63 n at 1 MB, 17 n at 20 MB and
// never more than 2.5 n + 288 MiB. Seen are 250 to 284 MB for 20 MB that ask for as
// much as they can (TestHostilePTXTakesLittleMemory). Programs come on top, see
// maxExpanded in gpu/soft/compile.
const (
	tablesBase    = 8 << 20   // bytes that any module may take
	tablesPerByte = 32        // of source
	tablesMost    = 192 << 20 // bytes, of any module
)

// About what entries of the tables take, with what they point to.
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

// budget is what a module's tables may still take.
type budget struct {
	source int // bytes
	left   uint64
	opcode map[string][]string // its parts: few opcodes are in many instructions
}

func newBudget(source int) *budget {
	return &budget{source: source, left: allowed(source), opcode: map[string][]string{}}
}

func allowed(source int) uint64 {
	return min(tablesBase+tablesPerByte*uint64(source), tablesMost)
}

// charge the budget with n bytes.
func (p *parser) charge(n uint64) error {
	if n > p.budget.left {
		return p.errorf("module too large: its registers, variables and instructions take more than %d bytes of memory, which is what %d bytes of source may take",
			allowed(p.budget.source), p.budget.source)
	}
	p.budget.left -= n
	return nil
}

// maxOpcodes are remembered; who has more is no compiler.
const maxOpcodes = 4096

// split an opcode at its dots. The parts are shared: they are not to be changed.
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
