package gpud

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"time"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// newToken returns a new secret for a vGPU: 256 random bits.
func newToken() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// knows reports whether token is the vGPU's, in constant time.
func (v *vgpu) knows(token string) bool {
	return v.token != "" && subtle.ConstantTimeCompare([]byte(v.token), []byte(token)) == 1
}

// seldom limits the log lines that a hostile worker can cause to one per second.
type seldom struct {
	last    sched.Time
	skipped int
}

// pass reports whether a line may be logged now, and how many were left out since
// the last line.
func (s *seldom) pass(at sched.Time) (ok bool, leftOut int) {
	if s.last != 0 && at-s.last < time.Second {
		s.skipped++
		return false, 0
	}
	leftOut, s.last, s.skipped = s.skipped, at, 0
	return true, leftOut
}
