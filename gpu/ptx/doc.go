// Package ptx reads NVIDIA PTX assembly into a checked syntax tree.
//
// The language is that of the public "Parallel Thread Execution ISA" manual (PTX
// ISA); comments name its sections. The package handles syntax, names, types and
// layout. The meaning of instructions is left to the package that executes them:
// an unknown opcode can be parsed and is refused there, with its line.
//
// The input is hostile: it comes from a guest. Every table has a limit, and an
// error always has the line.
package ptx

import (
	"fmt"
	"strings"
)

// Limits on a module. They are far above what compilers emit (the largest
// public kernels have some 60,000 instructions and 71,000 registers).
const (
	MaxSource       = 64 << 20 // bytes; see limits.go for the memory of the tables
	MaxInstructions = 1 << 18  // in one module, or parsed for one kernel
	MaxRegisters    = 1 << 18  // in one function
	MaxVariables    = 1 << 16  // in one module
	MaxFunctions    = 1 << 14
	MaxParameters   = 1 << 10 // of one function
	MaxScopes       = 64      // nesting of { }
	MaxOperands     = 1 << 10 // of one instruction or branch table
	MaxVarBytes     = 1 << 30 // of one variable
	MaxInitBytes    = 64 << 20
)

// Error is an error in a module, with its position.
type Error struct {
	Object string // the object, if several are linked
	Line   int
	Text   string // the instruction, if there is one
	Msg    string
	// Mistyped: an operand's type does not agree with the instruction (PTX ISA, "Type
	// Checking").
	Mistyped bool
}

// maxMessage is how many bytes of a message are kept: names in it can be as long as the
// source.
const maxMessage = 512

func message(format string, args []any) string {
	msg := fmt.Sprintf(format, args...)
	if len(msg) > maxMessage {
		msg = strings.ToValidUTF8(msg[:maxMessage], "") + " …"
	}
	return msg
}

func (e *Error) Error() string {
	where := fmt.Sprintf("line %d: ", e.Line)
	if e.Object != "" {
		where = e.Object + ": " + where
	}
	if e.Text != "" {
		return where + e.Msg + ": " + e.Text
	}
	return where + e.Msg
}
