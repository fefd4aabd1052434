package model

import (
	"fmt"
	"slices"
	"strings"
)

// Engine is how a device runs the instructions of kernels; empty: Automatic.
type Engine string

// The engines, as those of gpu/soft/exec.
const (
	Automatic   Engine = "automatic"   // interprets, and makes machine code of what runs often
	Interpreted Engine = "interpreted" // makes no machine code
	Compiled    Engine = "compiled"    // makes machine code before a kernel's first block
)

// Engines returns the names of all.
func Engines() []string {
	return []string{string(Automatic), string(Interpreted), string(Compiled)}
}

// Check fails for an engine that there is not.
func (e Engine) Check() error {
	if e != "" && !slices.Contains(Engines(), string(e)) {
		return fmt.Errorf("unknown engine %q: want one of %s", e, strings.Join(Engines(), ", "))
	}
	return nil
}
