package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// shadow is the access history of each byte of a block's shared memory. Two accesses
// are ordered if a barrier has released threads between them, whichever threads, or if
// both are of one warp whose lanes have synchronized between them. Some races are
// missed, and those that are reported are races unless locks or flags order the
// accesses.
type shadow struct {
	bytes    []shadowByte
	filled   bool             // by instructions that are not tracked byte by byte
	epoch    uint32           // number of barriers that have released threads
	meetings [maxWarps]uint32 // for each warp, how often its lanes have synchronized
}

// shadowByte is the history of a byte. Threads are stored as their index plus one; 0 is
// none. An access of an earlier epoch is ignored.
type shadowByte struct {
	writer, reader    int32
	other             int32 // a second reader
	written           bool
	value             byte
	mixed             bool // the readers are in several warps
	wroteIn, readIn   uint32
	wroteMet, readMet uint32
}

// shadowBytes is the size of a shadowByte.
const shadowBytes = 32

// shadowSize returns the size of the shadow of a block in bytes.
func (p *Program) shadowSize(shared uint64) uint64 {
	if !p.checks.Race && !p.checks.Init {
		return 0
	}
	return shared * shadowBytes
}

// begin resets the shadow for the next block.
func (s *shadow) begin() {
	clear(s.bytes)
	s.filled, s.epoch = false, 0
	clear(s.meetings[:])
}

// met records that lanes of some warps have synchronized.
func (s *shadow) met(act []uint32) {
	if s == nil {
		return
	}
	for w, a := range act {
		if a != 0 {
			s.meetings[w]++
		}
	}
}

// order makes all later accesses ordered after all earlier ones.
func (s *shadow) order() {
	if s != nil {
		s.epoch++
	}
}

func (s *shadow) fill() {
	if s != nil {
		s.filled = true
	}
}

// use checks and records an access of a lane.
func (s *shadow) use(c model.Checks, u *use, m *machine, lane int, at uint64) error {
	for i := range u.size {
		b := &s.bytes[at+i]
		if c.Init && u.read && !b.written && !s.filled {
			return fmt.Errorf("%w: read of shared address %#x, which no thread has written", abi.ErrLaunchFailed, at+i)
		}
		if !c.Race || u.strong {
			b.written = b.written || u.write
			continue
		}
		value, known := byte(0), false
		if u.value != nil {
			value, known = u.value(m, lane, i)
		}
		if who, did := s.conflict(b, u.write, lane, known && value == b.value); who >= 0 {
			does := "read"
			if u.write {
				does = "write"
			}
			return fmt.Errorf("%w: race: %s of shared address %#x, and thread %v %s it without a barrier between the two", abi.ErrLaunchFailed, does, at+i, m.thread(who), did)
		}
		if u.write {
			b.written, b.value = true, value
			b.writer, b.wroteIn, b.wroteMet = int32(lane)+1, s.epoch, s.meetings[lane/ir.WarpSize]
		} else {
			s.recordRead(b, lane)
		}
	}
	return nil
}

// conflict returns a thread whose access of a byte is not ordered with that of a lane,
// and the kind of that access; who is -1 if there is none. Two writes of the same value
// are not a conflict.
func (s *shadow) conflict(b *shadowByte, write bool, lane int, same bool) (who int, did string) {
	me := int32(lane) + 1
	harmless := write && same
	if b.writer != 0 && b.writer != me && !harmless && !s.ordered(b.writer, lane, b.wroteIn, b.wroteMet, false) {
		return int(b.writer) - 1, "writes"
	}
	if !write {
		return -1, ""
	}
	r := b.reader
	if r == me {
		r = b.other
	}
	if r != 0 && !s.ordered(r, lane, b.readIn, b.readMet, b.mixed) {
		return int(r) - 1, "reads"
	}
	return -1, ""
}

// ordered reports whether a synchronization was between another thread's access and
// now.
func (s *shadow) ordered(other int32, lane int, epoch, met uint32, mixed bool) bool {
	w := lane / ir.WarpSize
	return epoch != s.epoch || !mixed && int(other-1)/ir.WarpSize == w && met != s.meetings[w]
}

func (s *shadow) recordRead(b *shadowByte, lane int) {
	me, w := int32(lane)+1, lane/ir.WarpSize
	if b.reader == 0 || s.ordered(b.reader, lane, b.readIn, b.readMet, b.mixed) {
		b.reader, b.other, b.mixed = me, 0, false
	} else if b.reader != me {
		b.other = me
		b.mixed = b.mixed || int(b.reader-1)/ir.WarpSize != w
	}
	b.readIn, b.readMet = s.epoch, s.meetings[w]
}
