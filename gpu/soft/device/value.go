package device

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The CUstreamWriteValue_flags are the default, and without the memory barrier before
// the write. The writes of a stream are in order in both cases.
const writeWithoutBarrier = 1

// StreamWriteValue32 implements worker.Context.
func (c *Context) StreamWriteValue32(s worker.Stream, addr uint64, value, flags uint32, done func(error)) error {
	if flags&^writeWithoutBarrier != 0 || addr%4 != 0 {
		return abi.ErrInvalidValue
	}
	return c.CopyHtoD(s, addr, binary.LittleEndian.AppendUint32(nil, value), done)
}

// StreamWriteValue64 implements worker.Context.
func (c *Context) StreamWriteValue64(s worker.Stream, addr, value uint64, flags uint32, done func(error)) error {
	if flags&^writeWithoutBarrier != 0 || addr%8 != 0 {
		return abi.ErrInvalidValue
	}
	return c.CopyHtoD(s, addr, binary.LittleEndian.AppendUint64(nil, value), done)
}
