// Package amd64 makes and runs machine code for x86-64 with AVX2.
//
// An Assembler appends instructions of the tables (table.go, table_vector.go)
// to a buffer; Load puts finished functions into executable memory; Function.Call
// runs one on the calling goroutine.
//
// # What generated code must obey
//
// Go's runtime does not know generated code, so the code keeps out of its way:
//
//   - It gets the address of a context in RDI and returns a number in RAX.
//     Everything else that it reads and writes is reached through the context.
//   - It leaves RSP, RBP, R14 and R15 as they were and has no stack: no push, no
//     call. The goroutine's stack may have only a few hundred bytes left. All
//     other registers are free. (R14 is the running g and X15 zero in Go's own
//     code; the wrapper that Go puts around enter, which is ABI0, sets both again
//     after it. RBP leads tracers from frame to frame. R15 belongs to programs
//     that are linked dynamically.)
//   - It leaves MXCSR and the direction flag as they were. Enter runs VZEROUPPER
//     after it.
//   - It never calls Go. It stores what it wants in the context and returns; Go
//     acts and calls again.
//   - It returns within about 100 µs. A goroutine in generated code cannot be
//     preempted: the runtime sees a program counter that it does not know
//     (runtime.isAsyncSafePoint), and a collection that stops the world waits for
//     it. The one who generates loops counts their turns.
//   - It cannot fault: a fault in code that the runtime does not know ends the
//     process. So it checks every address that a kernel makes.
//   - It stores no Go pointers, since it has no write barriers.
//
// The context and what it points to are memory that does not move while the code
// runs: Go's heap or a mapping, not a goroutine's stack. Addresses in it are
// numbers, which do not keep anything alive: whoever calls does (runtime.KeepAlive).
//
// Signals are no concern: their handlers run on a stack of their own and find g by
// thread-local storage, and a profile counts the time as external code.
package amd64
