package virtio

import "fmt"

// Error describes which rule of the specification the other side broke.
type Error struct{ Reason string }

func (e *Error) Error() string { return "virtio: " + e.Reason }

func broken(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }
