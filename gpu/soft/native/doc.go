// Package native compiles runs of instructions (gpu/soft/ir) to machine code for
// processors with AVX2.
//
// A run is a sequence of consecutive instructions of a block: instructions that
// compute, and either loads or one store or atomic operation (Known). Its function
// processes one tile of eight lanes after another: it loads the registers that the run
// reads from the machine's register files, holds the results in vector registers, and
// stores those that are live afterwards. There are two forms, one for tiles in which
// all lanes are active and one with a mask.
//
// Memory is shared and local memory, parameters and, for each access to device memory,
// one allocation. Each access checks its bounds; an access that is out of bounds leaves
// the run before the instruction (memory.go), and the caller executes it.
//
// A run with accesses has two bodies. In the general body, the results of all
// instructions before an access are in the register files when the access leaves, as
// the caller needs them there. The quick body, for tiles of which all lanes are active,
// writes nothing to the register files before its last access; where a check fails, it
// continues at the start of the general body. Its loads whose addresses differ by
// constants examine the addresses of the lanes once (group.go).
//
// A region (region.go) is a set of blocks between which whole warps branch. In blocks
// whose accesses are at steady addresses (steady.go), the addresses, bounds and
// branches of a warp are computed once for all of its lanes (steady_block.go).
//
// The stages from an instruction to code: a lowering (lower.go) adds vector
// instructions to a builder, each of which writes a value of its own; results.go adds
// the stores; gpu/soft/regalloc assigns registers; run.go writes the loop over tiles
// around them with gpu/soft/amd64.
//
// Every result equals that of gpu/soft/ops, bit for bit. Where the processor differs,
// instructions are added: NaNs of 32 bits are replaced by that of PTX (settle),
// subnormal numbers are flushed by compare and blend (flush), min and max handle NaNs
// and zeros as PTX does (least), and nothing is contracted: only an fma is compiled to
// an fma.
package native
