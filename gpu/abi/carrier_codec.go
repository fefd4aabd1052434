package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrMessage is the error of a carrier message that does not conform to
// carrier.go.
var ErrMessage = errors.New("bad carrier message")

// CarrierHeader starts every carrier message.
type CarrierHeader struct {
	Type     uint16
	Flags    uint16
	Length   uint32 // of the body, in bytes
	Argument uint32
}

// Append appends the header to b.
func (h CarrierHeader) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, Magic)
	b = binary.LittleEndian.AppendUint16(b, h.Type)
	b = binary.LittleEndian.AppendUint16(b, h.Flags)
	b = binary.LittleEndian.AppendUint32(b, h.Length)
	return binary.LittleEndian.AppendUint32(b, h.Argument)
}

// DecodeCarrierHeader decodes a message's first CarrierHeaderSize bytes and
// checks magic and length; errors wrap ErrMessage.
func DecodeCarrierHeader(b []byte) (h CarrierHeader, err error) {
	if len(b) < CarrierHeaderSize {
		return h, fmt.Errorf("%w: header has %d bytes", ErrMessage, len(b))
	}
	if m := binary.LittleEndian.Uint32(b); m != Magic {
		return h, fmt.Errorf("%w: unknown magic %#x", ErrMessage, m)
	}
	h = CarrierHeader{
		Type:     binary.LittleEndian.Uint16(b[4:]),
		Flags:    binary.LittleEndian.Uint16(b[6:]),
		Length:   binary.LittleEndian.Uint32(b[8:]),
		Argument: binary.LittleEndian.Uint32(b[12:]),
	}
	if h.Length > MaxCarrierBody {
		return h, fmt.Errorf("%w: body has %d bytes", ErrMessage, h.Length)
	}
	return h, nil
}

// Hello is the body of MsgHello.
type Hello struct {
	Major, Minor uint16
	PID          uint32 // in the guest
	Name         string // of the process; not trusted
	Token        string
}

const helloString = 64

// Append appends the body to b; longer strings are truncated.
func (h Hello) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, h.Major)
	b = binary.LittleEndian.AppendUint16(b, h.Minor)
	b = binary.LittleEndian.AppendUint32(b, h.PID)
	for _, s := range []string{h.Name, h.Token} {
		var field [helloString]byte
		copy(field[:], s)
		b = append(b, field[:]...)
	}
	return b
}

// DecodeHello decodes the body of MsgHello; errors wrap ErrMessage.
func DecodeHello(b []byte) (h Hello, err error) {
	if len(b) != HelloSize {
		return h, fmt.Errorf("%w: hello has %d bytes", ErrMessage, len(b))
	}
	text := func(b []byte) string {
		s, _, _ := strings.Cut(string(b), "\x00")
		return s
	}
	return Hello{
		Major: binary.LittleEndian.Uint16(b),
		Minor: binary.LittleEndian.Uint16(b[2:]),
		PID:   binary.LittleEndian.Uint32(b[4:]),
		Name:  text(b[8 : 8+helloString]),
		Token: text(b[8+helloString : 8+2*helloString]),
	}, nil
}

// PageSize is the alignment of extents, in bytes.
const PageSize = 4096

// Region is the body of MsgRegion on the worker's socket.
type Region struct {
	Size    uint64 // bytes, page-aligned
	Placed  bool   // has an address (RegionPlaced)
	Address uint64 // of the first byte, page-aligned; 0 unless placed
	Extents []Extent
}

// Flags returns the flags of the region's message.
func (r Region) Flags() uint16 {
	if r.Placed {
		return RegionPlaced
	}
	return 0
}

// Extent is a run of pages of one descriptor.
type Extent struct {
	FD     uint32 // index of the message's descriptors
	Offset uint64 // bytes, page-aligned
	Length uint64 // bytes, page-aligned, not zero
}

const extentSize = 24

// MaxExtents is how many extents fit into a message.
const MaxExtents = (MaxCarrierBody - 16) / extentSize

// Append appends the body to b.
func (r Region) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Size)
	if r.Placed {
		b = binary.LittleEndian.AppendUint64(b, r.Address)
	}
	for _, e := range r.Extents {
		b = binary.LittleEndian.AppendUint32(b, e.FD)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint64(b, e.Offset)
		b = binary.LittleEndian.AppendUint64(b, e.Length)
	}
	return b
}

// DecodeRegion decodes the body of a MsgRegion with these flags and checks
// everything that can be checked without its fds descriptors and without the
// window: alignment, the sum of the lengths, and MaxRegionSize. Errors wrap
// ErrMessage.
func DecodeRegion(flags uint16, b []byte, fds int) (r Region, err error) {
	r.Placed = flags&RegionPlaced != 0
	head := 8
	if r.Placed {
		head = 16
	}
	if len(b) < head+extentSize || (len(b)-head)%extentSize != 0 {
		return r, fmt.Errorf("%w: region message has %d bytes", ErrMessage, len(b))
	}
	r.Size = binary.LittleEndian.Uint64(b)
	if r.Size == 0 || r.Size > MaxRegionSize || r.Size%PageSize != 0 {
		return r, fmt.Errorf("%w: invalid region size %d", ErrMessage, r.Size)
	}
	if r.Placed {
		if r.Address = binary.LittleEndian.Uint64(b[8:]); r.Address%PageSize != 0 {
			return r, fmt.Errorf("%w: region address %#x is not page-aligned", ErrMessage, r.Address)
		}
	}
	r.Extents, err = decodeExtents(b[head:], r.Size, fds)
	return r, err
}

func decodeExtents(b []byte, size uint64, fds int) ([]Extent, error) {
	var sum uint64
	list := make([]Extent, 0, len(b)/extentSize)
	for ; len(b) > 0; b = b[extentSize:] {
		e := Extent{
			FD:     binary.LittleEndian.Uint32(b),
			Offset: binary.LittleEndian.Uint64(b[8:]),
			Length: binary.LittleEndian.Uint64(b[16:]),
		}
		switch {
		case uint64(e.FD) >= uint64(max(fds, 0)):
			return nil, fmt.Errorf("%w: extent refers to descriptor %d, the message has %d", ErrMessage, e.FD, fds)
		case e.Offset%PageSize != 0 || e.Length%PageSize != 0 || e.Length == 0:
			return nil, fmt.Errorf("%w: extent %d+%d is not page-aligned", ErrMessage, e.Offset, e.Length)
		case e.Length > size-sum || e.Offset > 1<<62:
			return nil, fmt.Errorf("%w: extents exceed the region size %d", ErrMessage, size)
		}
		sum += e.Length
		list = append(list, e)
	}
	if sum != size {
		return nil, fmt.Errorf("%w: extents have %d bytes, want the region size %d", ErrMessage, sum, size)
	}
	return list, nil
}
