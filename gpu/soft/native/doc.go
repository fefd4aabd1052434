// Package native makes machine code of runs of instructions (gpu/soft/ir) for
// processors with AVX2.
//
// A run is consecutive instructions of a block: those that compute, and either loads or
// one store or atomic operation (Known). Its function works on one tile of eight lanes
// after another: it loads what the run reads from the machine's register files, keeps
// what it computes in vector registers, and stores what is live afterwards. There are
// two forms, one for tiles in which all lanes take part and one with a mask.
//
// Memory is shared and local memory, parameters and, for each access to device memory,
// one allocation. Each access checks its bounds; what is not inside leaves the run before
// the instruction (memory.go), and whoever called does it.
//
// A run that has accesses has two bodies. The general one has all that an instruction
// computed before it in the register files when it leaves, which the caller needs. The
// quick one, for tiles of which all lanes take part, writes nothing there before its
// last access and, where a check fails, goes on at the start of the general one. Its
// loads whose addresses differ by constants look at the lanes' addresses once (group.go).
//
// A region (region.go) is blocks of which whole warps go from one to the next. In those
// whose accesses are at steady addresses (steady.go), a warp's addresses, bounds and
// branches are computed once for all of its lanes (steady_block.go).
//
// The way from an instruction to code: a lowering (lower.go) adds vector
// instructions to a builder, of which each writes a value of its own; results.go
// adds the stores; gpu/soft/regalloc gives registers; run.go writes the loop over
// tiles around them with gpu/soft/amd64.
//
// Every result is that of gpu/soft/ops, bit for bit. Where the processor differs,
// instructions are added: NaNs of 32 bits become the one of PTX (settle), denormals are
// flushed by compare and blend (flush), min and max treat NaNs and zeros as PTX
// does (least), and nothing is contracted: only fma is an fma.
package native
