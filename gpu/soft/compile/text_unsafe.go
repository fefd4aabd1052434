package compile

import "unsafe"

// textOf returns bytes as a string without a copy. They must not be changed afterwards.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
