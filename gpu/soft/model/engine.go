package model

import (
	"fmt"
	"slices"
	"strings"
)

// Engine selects how a device executes the instructions of kernels; empty means
// Automatic.
type Engine string

// The engines, as in gpu/soft/exec.
const (
	Automatic   Engine = "automatic"   // interprets, and compiles code that runs often
	Interpreted Engine = "interpreted" // does not compile
	Compiled    Engine = "compiled"    // compiles before a kernel's first block
)

// Engines returns the names of all engines.
func Engines() []string {
	return []string{string(Automatic), string(Interpreted), string(Compiled)}
}

// Check returns an error unless the engine exists or is empty.
func (e Engine) Check() error {
	if e != "" && !slices.Contains(Engines(), string(e)) {
		return fmt.Errorf("unknown engine %q: want one of %s", e, strings.Join(Engines(), ", "))
	}
	return nil
}
