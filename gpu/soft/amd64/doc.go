// Package amd64 generates and executes machine code for x86-64 with AVX2.
//
// An Assembler appends instructions of the tables (table.go, table_vector.go) to a
// buffer; Load copies finished functions to executable memory; Function.Call executes
// one on the calling goroutine.
//
// # Rules for generated code
//
// Go's runtime is unaware of generated code, so the code must not interfere with it:
//
//   - It receives the address of a context in RDI and returns a number in RAX.
//     Everything else that it reads and writes is accessed through the context.
//   - It preserves RSP, RBP, R14 and R15 and has no stack: no push, no call. The
//     goroutine's stack may have only a few hundred bytes left. All other registers are
//     free. (R14 is the running g and X15 zero in Go's own code; the wrapper that Go
//     adds around enter, which is ABI0, sets both again after it. Tracers follow RBP
//     from frame to frame. R15 belongs to programs that are linked dynamically.)
//   - It preserves MXCSR and the direction flag. enter executes VZEROUPPER after it.
//   - It never calls Go. It stores its request in the context and returns; Go performs
//     it and calls again.
//   - It returns within about 100 µs. A goroutine in generated code cannot be
//     preempted: the runtime sees an unknown program counter
//     (runtime.isAsyncSafePoint), and a collection that stops the world waits for it.
//     Whoever generates loops must count their turns.
//   - It must not fault: a fault in code that is unknown to the runtime ends the
//     process. So it checks every address that a kernel computes.
//   - It stores no Go pointers, as it has no write barriers.
//
// The context and what it points to must be memory that does not move while the code
// runs: Go's heap or a mapping, not a goroutine's stack. Addresses in it are numbers,
// which do not keep anything alive: the caller must (runtime.KeepAlive).
//
// Signals need no precautions: their handlers run on a stack of their own and find g by
// thread-local storage, and a profile counts the time as external code.
package amd64
