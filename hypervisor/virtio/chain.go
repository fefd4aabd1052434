package virtio

import "encoding/binary"

// Descriptor flags (2.7.5).
const (
	descNext     = 1
	descWrite    = 2
	descIndirect = 4

	descSize = 16
)

// Limits are the limits of one chain.
type Limits struct {
	Descriptors int    // in one chain, indirect ones included
	Bytes       uint64 // in one chain, both directions together
}

// Chain is one request: buffers to read, then buffers to write (2.7.4.2). The
// slices are guest memory, which the guest may change at any time: copy before
// checking.
type Chain struct {
	Head               uint16
	Readable, Writable [][]byte
	In, Out            uint64 // bytes in Readable and in Writable
}

// walker follows one chain. A chain must not be longer than the limit, which
// also detects loops.
type walker struct {
	mem      *Memory
	limits   Limits
	indirect bool // negotiated
	chain    Chain
	seen     int
}

type desc struct {
	addr        uint64
	length      uint32
	flags, next uint16
}

func readDesc(table []byte, i uint16) desc {
	var d [descSize]byte
	copy(d[:], table[int(i)*descSize:])
	le := binary.LittleEndian
	return desc{le.Uint64(d[:]), le.Uint32(d[8:]), le.Uint16(d[12:]), le.Uint16(d[14:])}
}

// walk follows the chain that starts at head of the table, which is guest
// memory with a size that is a multiple of 16 bytes.
func (w *walker) walk(table []byte, head uint16, nested bool) error {
	n := len(table) / descSize
	for i := head; ; {
		if int(i) >= n {
			return broken("descriptor %d is out of range, the table has %d", i, n)
		}
		d := readDesc(table, i)
		if d.flags&descIndirect != 0 {
			return w.indirectTable(d, nested)
		}
		if err := w.buffer(d); err != nil {
			return err
		}
		if d.flags&descNext == 0 {
			return nil
		}
		i = d.next
	}
}

// indirectTable follows an indirect table (2.7.5.3). The descriptor that
// points to the table must be the last of its chain, and a table must not
// contain further indirect descriptors.
func (w *walker) indirectTable(d desc, nested bool) error {
	switch {
	case !w.indirect:
		return broken("indirect descriptor without the negotiated feature")
	case nested:
		return broken("indirect table inside an indirect table")
	case d.flags&descNext != 0:
		return broken("indirect descriptor has flag NEXT")
	case d.length == 0 || d.length%descSize != 0 || d.length/descSize > 1<<16:
		return broken("invalid indirect table size of %d bytes", d.length)
	}
	table, err := w.mem.Bytes(d.addr, uint64(d.length))
	if err != nil {
		return err
	}
	return w.walk(table, 0, true)
}

func (w *walker) buffer(d desc) error {
	c := &w.chain
	if w.seen++; w.seen > w.limits.Descriptors {
		return broken("chain is too long, want at most %d descriptors", w.limits.Descriptors)
	}
	if c.In+c.Out+uint64(d.length) > w.limits.Bytes {
		return broken("chain is too large, want at most %d bytes", w.limits.Bytes)
	}
	for addr, n := d.addr, uint64(d.length); n > 0; {
		i := w.mem.find(addr)
		if i < 0 {
			return broken("buffer %#x+%#x is outside of guest memory", d.addr, d.length)
		}
		r := &w.mem.regions[i]
		off := addr - r.GPA
		part := min(n, r.Size-off)
		b := r.bytes[off : off+part : off+part]
		switch {
		case d.flags&descWrite != 0:
			c.Writable, c.Out = append(c.Writable, b), c.Out+part
		case len(c.Writable) > 0:
			return broken("readable descriptor after a writable one")
		default:
			c.Readable, c.In = append(c.Readable, b), c.In+part
		}
		addr, n = addr+part, n-part
	}
	return nil
}

// Read copies up to n bytes from the chain's readable part, from offset off.
func (c *Chain) Read(p []byte, off uint64) int {
	n := 0
	for _, b := range c.Readable {
		if off >= uint64(len(b)) {
			off -= uint64(len(b))
			continue
		}
		n += copy(p[n:], b[off:])
		off = 0
		if n == len(p) {
			break
		}
	}
	return n
}

// Write copies p to the start of the chain's writable part, as far as it fits,
// and returns the number of bytes.
func (c *Chain) Write(p []byte) int {
	n := 0
	for _, b := range c.Writable {
		n += copy(b, p[n:])
	}
	return n
}
