package cuda

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// out is memory for a value that libcuda returns; it is pinned while calls use
// it.
type out[T any] struct {
	pinner runtime.Pinner
	value  *T
}

// newOut returns a zero T that C may write to until free.
func newOut[T any]() *out[T] {
	o := &out[T]{value: new(T)}
	o.pinner.Pin(o.value)
	return o
}

func (o *out[T]) at() uintptr { return uintptr(unsafe.Pointer(o.value)) }
func (o *out[T]) free()       { o.pinner.Unpin() }

// structMemory is memory for a struct that libcuda reads or writes, in C's layout:
// pinned, and aligned as strictly as any of them requires.
type structMemory struct {
	pinner runtime.Pinner
	bytes  []byte
}

const structAlignment = 64 // CUtensorMap's

// newStruct returns a copy of b.
func newStruct(b []byte) *structMemory {
	room := make([]byte, len(b)+structAlignment)
	start := int(-uintptr(unsafe.Pointer(unsafe.SliceData(room))) & (structAlignment - 1))
	m := &structMemory{bytes: room[start : start+len(b) : start+len(b)]}
	copy(m.bytes, b)
	m.pinner.Pin(unsafe.SliceData(m.bytes))
	return m
}

func (m *structMemory) at() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes))) }
func (m *structMemory) free()       { m.pinner.Unpin() }

// pinned calls f with the address of b, which is pinned in the meantime.
func pinned(b []byte, f func(address uintptr) error) error {
	if len(b) == 0 {
		return f(0)
	}
	var p runtime.Pinner
	p.Pin(unsafe.SliceData(b))
	defer p.Unpin()
	return f(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// hostBytes returns n bytes of memory that libcuda allocated.
func hostBytes(address uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), n)
}

// goString reads a NUL-terminated string of at most limit bytes that libcuda owns.
func goString(address uintptr, limit int) string {
	if address == 0 {
		return ""
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	var b []byte
	for i := range limit {
		c := *(*byte)(unsafe.Add(p, i))
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}

// launchExtra is cuLaunchKernel's "extra": the unmodified parameter buffer.
type launchExtra struct {
	list [5]uintptr
	size uint64
}

// Source: cuda.h, CU_LAUNCH_PARAM_*.
const (
	launchParamEnd           = 0
	launchParamBufferPointer = 1
	launchParamBufferSize    = 2
)

// withExtra calls f with the address of the extra list for params.
func withExtra(params []byte, f func(extra uintptr) error) error {
	if len(params) == 0 {
		return f(0)
	}
	o := newOut[launchExtra]()
	defer o.free()
	return pinned(params, func(address uintptr) error {
		o.value.size = uint64(len(params))
		o.value.list = [5]uintptr{launchParamBufferPointer, address, launchParamBufferSize, uintptr(unsafe.Pointer(&o.value.size)), launchParamEnd}
		return f(uintptr(unsafe.Pointer(&o.value.list)))
	})
}

// launchConfig is CUlaunchConfig with room for its attributes. Source: cuda.h of
// CUDA 12.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	stream      uintptr
	attributes  uintptr
	count       uint32
	attribute   [2 + abi.MaxGraphAttributes]struct {
		id    int32
		_     uint32
		value [abi.StreamAttrValueWire]byte
	}
}

// These are values of CUlaunchAttributeID.
const (
	launchAttributeCooperative = 2
	launchAttributeCluster     = 4
)

// withConfig calls f with the address of a launch's configuration.
func withConfig(l worker.Launch, attributes []abi.StreamAttrValue, stream uintptr, f func(config uintptr) error) error {
	o := newOut[launchConfig]()
	defer o.free()
	c := o.value
	c.grid, c.block, c.shared, c.stream = l.Grid, l.Block, l.Shared, stream
	if l.Cooperative {
		c.attribute[0].id, c.attribute[0].value[0] = launchAttributeCooperative, 1
		c.count = 1
	}
	if l.Cluster != [3]uint32{} {
		a := &c.attribute[c.count]
		a.id = launchAttributeCluster
		for i, n := range l.Cluster {
			binary.LittleEndian.PutUint32(a.value[4*i:], n)
		}
		c.count++
	}
	for _, a := range attributes {
		c.attribute[c.count].id, c.attribute[c.count].value = a.Case, a.Bytes()
		c.count++
	}
	c.attributes = uintptr(unsafe.Pointer(&c.attribute))
	return f(uintptr(unsafe.Pointer(c)))
}

// addressOf returns the address of a part of a pinned value.
func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func le64(b []byte) uint64 { return *(*uint64)(unsafe.Pointer(unsafe.SliceData(b[:8]))) }
