//go:build !linux || !amd64

package amd64

import (
	"errors"
	"unsafe"
)

// Available reports whether this processor can execute the code, which is false for
// other processors and systems.
func Available() bool { return false }

var errOther = errors.New("generated code for amd64: this is another processor or system")

func mapCode([]byte) ([]byte, error) { return nil, errOther }

func unmapCode([]byte) error { return errOther }

func enter(uintptr, unsafe.Pointer) uint64 { panic(errOther) }

// Fill32 panics, as Available is false.
func Fill32([]uint32, uint32) { panic(errOther) }
