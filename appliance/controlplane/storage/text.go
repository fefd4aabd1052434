package storage

import "strings"

const (
	// MaxLine is how many bytes Line returns at most.
	MaxLine   = 256
	maxReason = 300
)

// Line returns the output of a device or a daemon as one line of printable text that
// may be stored in an object: at most MaxLine bytes.
func Line(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return r < ' ' || r == ' ' || r == 0x7f }), " ")
	if len(s) > MaxLine {
		s = strings.ToValidUTF8(s[:MaxLine], "")
	}
	return s
}

// Reason returns the text of an error as one line for a status.
func Reason(s string) string {
	s = Line(s)
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}
