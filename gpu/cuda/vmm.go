package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// virtual is a context's device memory on a card with virtual memory management:
// each block has addresses in the session's window, which are backed by pieces of
// device memory that can be removed and restored (CUDA driver API, "Virtual
// Memory Management").
type virtual struct {
	granule uint64 // in bytes; pieces are multiples of it
	window  *worker.Window
	// move is held by Evict, Restore and Share, and read-locked while memory is allocated
	// and cleared, so that nothing is copied before it is zero; locked before mu.
	move sync.RWMutex

	mu        sync.Mutex // guards the following; not held while bytes are copied
	blocks    []*block   // sorted by address
	aliases   map[uint64]*alias
	opened    map[uint64]opened // other processes' memory, by address
	evicted   bool
	condemned []func()   // frees in blocks that are being copied
	streams   [2]uintptr // used in turns by copies; created by the first Evict
}

// block is a range of addresses with its memory: that of one large allocation, or
// of many small ones.
type block struct {
	address, size uint64
	small         bool
	used          []span // allocations, sorted by address; size as accounted
	pieces        []*piece
	aliases       []*alias // its other mappings
	shared        bool     // with other processes: it is one piece, which is not evicted
	moving        bool
}

// piece is device memory that backs a part of a block, or its copy on the host.
type piece struct {
	address, size uint64
	of            *block
	handle        uint64 // 0: it is not on the card
	away          bool
	host          []byte // its contents while it is evicted; nil: zeros
}

const (
	// slabSize is the size of blocks for allocations smaller than half of it.
	slabSize = 2 << 20
	// largestPiece bounds what is evicted at once: small enough to copy little
	// more than was asked for, large enough that mapping (about 0.1 ms) costs
	// little compared with copying (about 3 ms).
	largestPiece = 64 << 20
)

// CUdevice_attribute and flags, from cuda.h.
const (
	attributeVirtualMemory = 102
	attributeDescriptors   = 103 // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
	memAllocationPinned    = 1
	memLocationDevice      = 1
)

// allocationProp is CUmemAllocationProp. The blank fields stay zero: a field for Windows,
// and no special memory.
type allocationProp struct {
	kind, handles        int32
	locationType, device int32
	_                    uintptr
	_                    [8]byte
}

// accessDesc is CUmemAccessDesc.
type accessDesc struct{ locationType, device, flags int32 }

func (d *driver) prop() *out[allocationProp] {
	p := newOut[allocationProp]()
	*p.value = allocationProp{kind: memAllocationPinned, locationType: memLocationDevice, device: int32(d.device)}
	return p
}

// findVirtual returns the size of a granule, or 0 if the card or its driver does
// not support virtual memory management.
func (d *driver) findVirtual() uint64 {
	if d.info.Attributes[attributeVirtualMemory] == 0 {
		return 0
	}
	for f := cuMemAddressReserve; f <= cuMemGetAllocationGranularity; f++ {
		if !d.lib.has(f) {
			return 0
		}
	}
	prop, size := d.prop(), newOut[uint64]()
	defer prop.free()
	defer size.free()
	if d.lib.call(0, cuMemGetAllocationGranularity, size.at(), prop.at(), 0) != nil || *size.value == 0 {
		return 0
	}
	return *size.value
}

// Evicts implements worker.Driver.
func (d *driver) Evicts() bool { return d.granule != 0 }

func roundUp(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

// alloc allocates in a block, or in a new one, and clears the memory. Other allocations,
// and frees, continue in the meantime.
func (c *context) alloc(size uint64) (uint64, error) {
	v := c.virtual
	v.move.RLock()
	defer v.move.RUnlock()
	b, at, err := c.assign(worker.Accounted(size))
	if err != nil {
		return 0, err
	}
	if err := c.zeroNew(b, at, size); err != nil {
		c.unalloc(at)
		return 0, err
	}
	return at, nil
}

// assign assigns count accounted bytes of a block, which the caller clears.
func (c *context) assign(count uint64) (*block, uint64, error) {
	v := c.virtual
	small := count < slabSize/2
	if small {
		if b, at, ok := v.inSlab(count); ok {
			return b, at, nil
		}
	}
	length := roundUp(count, v.granule)
	if small {
		length = roundUp(slabSize, v.granule)
	}
	b, err := c.newBlock(length)
	if err != nil {
		return nil, 0, err
	}
	if b.small = small; small && v.evicted {
		b.pieces[0].host = make([]byte, length)
	}
	b.enter(b.address, count)
	v.mu.Lock()
	defer v.mu.Unlock()
	i, _ := slices.BinarySearchFunc(v.blocks, b.address, func(b *block, a uint64) int { return cmp.Compare(b.address, a) })
	v.blocks = slices.Insert(v.blocks, i, b)
	return b, b.address, nil
}

// inSlab assigns count bytes of a block with room for small allocations.
func (v *virtual) inSlab(count uint64) (*block, uint64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.blocks {
		at, ok := b.gap(count)
		if ok && b.small && !b.moving && b.pieces[0].away == v.evicted { // while evicted, the card is not used
			b.enter(at, count)
			return b, at, true
		}
	}
	return nil, 0, false
}

// gap returns the first free address in the block for count bytes.
func (b *block) gap(count uint64) (at uint64, ok bool) {
	at = b.address
	for _, s := range b.used {
		if s.start-at >= count {
			return at, true
		}
		at = s.start + s.size
	}
	return at, b.address+b.size-at >= count
}

func (b *block) enter(at, count uint64) {
	i, _ := slices.BinarySearchFunc(b.used, at, func(s span, a uint64) int { return cmp.Compare(s.start, a) })
	b.used = slices.Insert(b.used, i, span{start: at, size: count})
}

// counts returns how many of the accounted bytes are in the piece.
func (b *block) counts(p *piece) (n uint64) {
	for _, s := range b.used {
		from, to := max(s.start, p.address), min(s.start+s.size, p.address+p.size)
		if from < to {
			n += to - from
		}
	}
	return n
}

// zeroNew clears an allocation, whose memory may have been another guest's.
// Memory that is allocated in an evicted context is zero, unless it is in a slab
// whose memory was used before.
func (c *context) zeroNew(b *block, at, size uint64) error {
	if c.virtual.evicted {
		if b.small {
			clear(b.pieces[0].host[at-b.address:][:size])
		}
		return nil
	}
	return c.clear(at, size, c.zero)
}

func (c *context) clear(at, size uint64, stream uintptr) error {
	if err := c.call(cuMemsetD8Async, uintptr(at), 0, uintptr(size), stream); err != nil {
		return err
	}
	return c.call(cuStreamSynchronize, stream)
}

// newBlock allocates addresses of the window, and backs them unless the context is
// evicted. Mapping takes time, so callers do not hold mu, but move.
func (c *context) newBlock(size uint64) (*block, error) {
	at, err := c.virtual.window.Allocate(size, c.virtual.granule)
	if err != nil {
		return nil, err
	}
	b := &block{address: at, size: size}
	largest := roundUp(largestPiece, c.virtual.granule)
	for off := uint64(0); off < size; off += largest {
		b.pieces = append(b.pieces, &piece{address: b.address + off, size: min(largest, size-off), of: b, away: true})
	}
	if c.virtual.evicted {
		return b, nil
	}
	for _, p := range b.pieces {
		handle, err := c.create(p.size)
		if err == nil {
			if err = c.attach(p, handle); err != nil {
				err = errors.Join(err, c.call(cuMemRelease, uintptr(handle)))
			}
		}
		if err != nil {
			c.dropBlock(b)
			return nil, err
		}
		p.handle, p.away = handle, false
	}
	return b, nil
}

func (c *context) create(size uint64) (uint64, error) { return c.createFor(size, 0) }

// createFor allocates memory that can be exported in the given ways
// (CUmemAllocationHandleType).
func (c *context) createFor(size uint64, handles int32) (uint64, error) {
	prop, handle := c.d.prop(), newOut[uint64]()
	prop.value.handles = handles
	defer prop.free()
	defer handle.free()
	err := c.call(cuMemCreate, handle.at(), uintptr(size), prop.at(), 0)
	return *handle.value, err
}

// attach maps memory at a piece's addresses.
func (c *context) attach(p *piece, handle uint64) error {
	if err := c.call(cuMemMap, uintptr(p.address), uintptr(p.size), 0, uintptr(handle), 0); err != nil {
		return err
	}
	if err := c.setAccess(p.address, p.size, worker.AccessReadWrite); err != nil {
		return errors.Join(err, c.call(cuMemUnmap, uintptr(p.address), uintptr(p.size)))
	}
	return nil
}

func (c *context) setAccess(address, size uint64, access worker.Access) error {
	desc := newOut[accessDesc]()
	defer desc.free()
	*desc.value = accessDesc{memLocationDevice, int32(c.d.device), int32(access)}
	return c.call(cuMemSetAccess, uintptr(address), uintptr(size), desc.at(), 1)
}

// detach reverts attach and create.
func (c *context) detach(p *piece, handle uint64) error {
	return errors.Join(c.call(cuMemUnmap, uintptr(p.address), uintptr(p.size)), c.call(cuMemRelease, uintptr(handle)))
}

// dropBlock frees everything of a block.
func (c *context) dropBlock(b *block) {
	for _, p := range b.pieces {
		if !p.away {
			_ = c.hideAliases(p) // there are some only when the context is destroyed
			_ = c.detach(p, p.handle)
		}
		p.forget()
	}
	_ = c.virtual.window.Free(b.address)
}

// forget frees the copy on the host.
func (p *piece) forget() {
	if len(p.host) > slabSize {
		_ = unix.Munmap(p.host)
	}
	p.host = nil
}

// hostCopy returns memory for a piece that is evicted. It is not pinned: pinning
// takes longer than copying, and would have to be repeated each time so that a
// piece that is on the card uses no host memory.
func hostCopy(size uint64) ([]byte, error) {
	if size <= slabSize {
		return make([]byte, size), nil
	}
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("%w: allocate %d bytes of host memory: %w", abi.ErrOutOfMemory, size, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // fewer page faults; a hint
	return b, nil
}

// unalloc frees an allocation that is not used any more, and its block if it was
// the last one.
func (c *context) unalloc(address uint64) {
	v := c.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	i, found := slices.BinarySearchFunc(v.blocks, address, func(b *block, a uint64) int { return cmp.Compare(b.address, a) })
	if !found {
		i--
	}
	if i < 0 {
		return
	}
	b := v.blocks[i]
	if b.moving {
		v.condemned = append(v.condemned, func() { c.unalloc(address) })
		return
	}
	b.used = slices.DeleteFunc(b.used, func(s span) bool { return s.start == address })
	if len(b.used) == 0 {
		v.blocks = slices.Delete(v.blocks, i, i+1)
		c.dropBlock(b)
	}
}

// dropAll frees everything when the context is destroyed.
func (c *context) dropAll() {
	if c.virtual == nil {
		return
	}
	c.virtual.move.Lock() // a move in progress ends, because quit is closed
	defer c.virtual.move.Unlock()
	c.virtual.mu.Lock()
	defer c.virtual.mu.Unlock()
	for _, b := range c.virtual.blocks {
		c.dropBlock(b)
	}
	c.virtual.blocks = nil
	c.dropOpened()
}
