package compile

import "unsafe"

// textOf is bytes that nobody changes any more as a string, without a copy.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
