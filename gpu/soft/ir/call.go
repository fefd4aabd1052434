package ir

import "fmt"

// Callee is a function that is called dynamically: by its address, or again before it
// has returned.
type Callee struct {
	Name      string
	Signature string // of its parameters and results; that of a call must be the same
	Entry     int    // basic block
	Regs      []Ref
	From, To  uint32 // its range of local memory
	Recursive bool   // it may be entered again before it returns

	// Of its .local variables if it is Recursive: their size in bytes on the lane's stack,
	// their alignment, and the register with the address of the first one.
	Stack, Align uint32
	Base         Ref
}

// Word is a value of each lane, of 64 bits or, with Half, of 32: a register, or a
// location in local memory if the register is None.
type Word struct {
	Reg   Ref
	Local uint32
	Half  bool
}

// CopyLocal copies Size bytes within each lane's local memory.
type CopyLocal struct{ To, From, Size uint32 }

// Name implements Op.
func (o *CopyLocal) Name() string {
	return fmt.Sprintf("copy local[%d]=local[%d] %d bytes", o.To, o.From, o.Size)
}

// Registers implements Op.
func (o *CopyLocal) Registers() (results, sources []Ref) { return nil, nil }

// CopyWord copies between a register and local memory.
type CopyWord struct{ To, From Word }

// Name implements Op.
func (o *CopyWord) Name() string { return "copy word" }

// Registers implements Op.
func (o *CopyWord) Registers() (results, sources []Ref) {
	return registers(o.To.Reg), registers(o.From.Reg)
}

// Malloc allocates device memory in each lane; the result is 0 if there is not enough.
type Malloc struct{ Result, Size Word }

// Name implements Op.
func (o *Malloc) Name() string { return "malloc" }

// Registers implements Op.
func (o *Malloc) Registers() (results, sources []Ref) {
	return registers(o.Result.Reg), registers(o.Size.Reg)
}

// Free frees in each lane memory that Malloc has returned.
type Free struct{ Address Word }

// Name implements Op.
func (o *Free) Name() string { return "free" }

// Registers implements Op.
func (o *Free) Registers() (results, sources []Ref) { return nil, registers(o.Address.Reg) }

// Print is a call of vprintf in each lane.
type Print struct{ Result, Format, Args Word }

// Name implements Op.
func (o *Print) Name() string { return "vprintf" }

// Registers implements Op.
func (o *Print) Registers() (results, sources []Ref) {
	return registers(o.Result.Reg), registers(o.Format.Reg, o.Args.Reg)
}

// SetCondition is a call of cudaGraphSetConditional in each lane. The handle of a
// condition is the address in global memory of its value of 4 bytes.
type SetCondition struct{ Handle, Value Word }

// Name implements Op.
func (o *SetCondition) Name() string { return "cudaGraphSetConditional" }

// Registers implements Op.
func (o *SetCondition) Registers() (results, sources []Ref) {
	return nil, registers(o.Handle.Reg, o.Value.Reg)
}

// LaunchBuffer allocates in each lane the memory of a launch of the kernel at a code
// address, or returns 0.
type LaunchBuffer struct{ Result, Kernel Word }

// Name implements Op.
func (o *LaunchBuffer) Name() string { return "launch buffer" }

// Registers implements Op.
func (o *LaunchBuffer) Registers() (results, sources []Ref) {
	return registers(o.Result.Reg), registers(o.Kernel.Reg)
}

// LaunchKernel launches in each lane the kernel that a buffer describes. The result is a
// cudaError_t.
type LaunchKernel struct{ Result, Buffer, Stream Word }

// Name implements Op.
func (o *LaunchKernel) Name() string { return "launch kernel" }

// Registers implements Op.
func (o *LaunchKernel) Registers() (results, sources []Ref) {
	return registers(o.Result.Reg), registers(o.Buffer.Reg, o.Stream.Reg)
}

// Assertion is a call of __assertfail in each lane, which ends the kernel.
type Assertion struct{ Message, File, Line, Function Word }

// Name implements Op.
func (o *Assertion) Name() string { return "__assertfail" }

// Registers implements Op.
func (o *Assertion) Registers() (results, sources []Ref) {
	return nil, registers(o.Message.Reg, o.File.Reg, o.Line.Reg, o.Function.Reg)
}
