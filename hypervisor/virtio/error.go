package virtio

import "fmt"

// Error is a violation of the specification by the driver.
type Error struct{ Reason string }

func (e *Error) Error() string { return "virtio: " + e.Reason }

func broken(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }
