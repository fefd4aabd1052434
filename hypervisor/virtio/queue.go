package virtio

import "encoding/binary"

// Feature bits that concern queues (section 6).
const (
	FeatureIndirect = 1 << 28
	FeatureEventIdx = 1 << 29
	FeatureVersion1 = 1 << 32
)

// MaxQueueSize is the largest split virtqueue (2.7).
const MaxQueueSize = 32768

// Layout is the location of a queue in guest-physical memory.
type Layout struct {
	Size              uint16 // a power of two
	Desc, Avail, Used uint64
}

// Sizes of the three parts in bytes (2.7): the words for event indices are
// always included.
func (l Layout) descBytes() uint64  { return descSize * uint64(l.Size) }
func (l Layout) availBytes() uint64 { return 6 + 2*uint64(l.Size) }
func (l Layout) usedBytes() uint64  { return 6 + 8*uint64(l.Size) }

// Parts returns the sizes in bytes of the descriptor table, the available ring
// and the used ring.
func (l Layout) Parts() (desc, avail, used uint64) {
	return l.descBytes(), l.availBytes(), l.usedBytes()
}

// Position is the device's position: the next available entry to take, and the
// next used entry to write. Both wrap around at 65,536.
type Position struct{ Avail, Used uint16 }

// Queue is the device's side of one split virtqueue.
type Queue struct {
	mem               *Memory
	layout            Layout
	desc, avail, used []byte
	features          uint64
	limits            Limits
	pos               Position
	signalled         uint16 // value of pos.Used at the last Notify
	fresh             bool   // Notify was not called yet
}

// NewQueue returns the queue at layout in mem, for a driver that accepted
// features.
func NewQueue(mem *Memory, l Layout, pos Position, features uint64, limits Limits) (*Queue, error) {
	if l.Size == 0 || l.Size&(l.Size-1) != 0 || l.Size > MaxQueueSize {
		return nil, broken("invalid queue size %d", l.Size)
	}
	if l.Desc%16 != 0 || l.Avail%2 != 0 || l.Used%4 != 0 {
		return nil, broken("queue is misaligned: descriptors %#x, available %#x, used %#x", l.Desc, l.Avail, l.Used)
	}
	q := &Queue{mem: mem, layout: l, features: features, limits: limits, pos: pos, fresh: true}
	var err error
	if q.desc, err = mem.Bytes(l.Desc, l.descBytes()); err != nil {
		return nil, err
	}
	if q.avail, err = mem.Bytes(l.Avail, l.availBytes()); err != nil {
		return nil, err
	}
	if q.used, err = mem.Bytes(l.Used, l.usedBytes()); err != nil {
		return nil, err
	}
	return q, nil
}

// Size returns the number of entries of the queue.
func (q *Queue) Size() uint16 { return q.layout.Size }

// Position returns the queue's position, for whatever continues it.
func (q *Queue) Position() Position { return q.pos }

// UsedIndex returns the used ring's index in guest memory: where to continue
// after a device that stopped without a report of its position.
func (q *Queue) UsedIndex() uint16 { return load16(q.used[2:]) }

// Unused reports whether the used ring was never written. A driver provides
// zeroed rings after a reset; the ring of a queue that was only paused
// contains entries.
func (q *Queue) Unused() bool {
	for _, b := range q.used[2 : len(q.used)-2] {
		if b != 0 {
			return false
		}
	}
	return true
}

// Pop returns the next available chain; nil if there is none.
func (q *Queue) Pop() (*Chain, error) {
	size := q.layout.Size
	waiting := load16(q.avail[2:]) - q.pos.Avail
	if waiting == 0 {
		return nil, nil
	}
	if waiting > size {
		return nil, broken("%d available chains, want at most the queue size %d", waiting, size)
	}
	slot := 4 + 2*int(q.pos.Avail&(size-1))
	c, err := q.Walk(load16(q.avail[slot:]))
	if err != nil {
		return nil, err
	}
	q.pos.Avail++
	return c, nil
}

// Walk follows the chain that starts at descriptor head. A chain that was
// popped but not pushed still belongs to the device, and can be walked again.
func (q *Queue) Walk(head uint16) (*Chain, error) {
	w := walker{mem: q.mem, limits: q.limits, indirect: q.features&FeatureIndirect != 0}
	w.chain.Head = head
	if err := w.walk(q.desc, head, false); err != nil {
		return nil, err
	}
	return &w.chain, nil
}

// Push returns the chain to the driver, with written bytes in its writable
// part. Call Notify after the last Push.
func (q *Queue) Push(head uint16, written uint32) {
	entry := q.used[4+8*int(q.pos.Used&(q.layout.Size-1)):]
	binary.LittleEndian.PutUint32(entry, uint32(head))
	binary.LittleEndian.PutUint32(entry[4:], written)
	q.pos.Used++
	store16(q.used[2:], q.pos.Used)
}

// Notify reports whether the driver wants an interrupt for what was pushed
// since the last call (2.7.7.2).
func (q *Queue) Notify() bool {
	old, now := q.signalled, q.pos.Used
	first := q.fresh
	q.signalled, q.fresh = now, false
	fence() // the used index must be visible before the driver's setting is read
	if q.features&FeatureEventIdx != 0 {
		event := load16(q.avail[4+2*int(q.layout.Size):])
		return first || now-event-1 < now-old
	}
	return load16(q.avail)&1 == 0
}

// Arm requests a kick at the next available entry, and reports whether one is
// available already: then call Pop again instead of waiting. The event index
// is written whether it was negotiated or not: QEMU negotiates it with the
// driver without asking a vhost-user device, and the word exists in any case
// (2.7).
func (q *Queue) Arm() (more bool) {
	store16(q.used[4+8*int(q.layout.Size):], q.pos.Avail)
	return load16(q.avail[2:]) != q.pos.Avail
}

// Resume continues at the used index that the previous device wrote.
func (q *Queue) Resume() { q.pos.Used = q.UsedIndex() }
