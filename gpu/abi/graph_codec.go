package abi

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A graph record is the argument of GraphInstantiate:
//
//	u32 version, u32 total      as every record
//	u32 nodes, u32 zero
//	nodes times:
//	    u32 kind                GraphNode…
//	    u32 flags               GraphNodeDisabled
//	    u32 dependencies        how many
//	    u32 body                bytes, a multiple of 8
//	    dependencies times u32: numbers of nodes before this one, so that no cycle can
//	        be written down; then a u32 of zero if their number is odd
//	    body, as the kind requires
//
// In a graph update record, each node has the number of one node of the executable
// graph instead of dependencies, and the number of nodes is that of the changes.

// GraphNode is one node of a graph. Body is a GraphKernel, GraphCopy, GraphMemset
// or GraphEvent, or nil for an empty node.
type GraphNode struct {
	Kind, Flags uint32
	Deps        []uint32
	Body        any
}

// MaxGraphAttributes bounds the attributes of one kernel in a graph.
const MaxGraphAttributes = 8

// GraphKernel launches a kernel: u64 function, u32 grid and block dimensions, u32
// shared, u32 flags, u32 bytes of parameters, u32 number of attributes,
// parameters, padding, then per attribute u32 number, u32 zero and the value's
// bytes. Workers before version 1.3 do not support attributes.
type GraphKernel struct {
	Function    uint64
	Grid, Block [3]uint32
	Shared      uint32
	Flags       uint32 // as of Launch
	Params      []byte
	// Attributes has those that both a stream and a launch can have. They are
	// hints.
	Attributes []StreamAttrValue
}

// graphAttributes are the CUlaunchAttributeIDs of a GraphKernel: access policy
// window, priority, and the two of memory synchronization domains.
var graphAttributes = [...]int32{1, 8, 9, 10}

// GraphCopy copies layers of rows: u32 what, u32 region, then the rest as u64.
// Dst and Src are device addresses, or offsets in the region; pitches are the
// distances of rows, slices those of layers. All are in bytes.
type GraphCopy struct {
	What, Region         uint32
	Dst, Src             uint64
	Width, Height, Depth uint64
	DstPitch, DstSlice   uint64
	SrcPitch, SrcSlice   uint64
}

// GraphMemset writes rows: u32 value, u32 element width, then u64s.
type GraphMemset struct {
	Value, Width  uint32
	Dst, Pitch    uint64
	Columns, Rows uint64 // elements in a row, rows
}

// GraphEvent is the event that a node waits for or records: u64.
type GraphEvent uint64

// AppendGraphRecord appends a graph record, or a graph update record, to b.
func AppendGraphRecord(b []byte, nodes []GraphNode) []byte {
	w := beginRecord(b)
	w.u32(uint32(len(nodes)))
	w.u32(0)
	for _, n := range nodes {
		w.u32(n.Kind)
		w.u32(n.Flags)
		w.u32(uint32(len(n.Deps)))
		at := len(w.b)
		w.u32(0)
		for _, d := range n.Deps {
			w.u32(d)
		}
		w.align()
		start := len(w.b)
		w.graphBody(n.Body)
		binary.LittleEndian.PutUint32(w.b[at:], uint32(len(w.b)-start))
	}
	return w.end()
}

func (w *recordWriter) align() {
	for w.size()%8 != 0 {
		w.b = append(w.b, 0)
	}
}

func (w *recordWriter) graphBody(body any) {
	switch x := body.(type) {
	case GraphKernel:
		w.u64(x.Function)
		for _, v := range [...]uint32{x.Grid[0], x.Grid[1], x.Grid[2], x.Block[0], x.Block[1], x.Block[2], x.Shared, x.Flags, uint32(len(x.Params)), uint32(len(x.Attributes))} {
			w.u32(v)
		}
		w.b = append(w.b, x.Params...)
		w.align()
		for _, a := range x.Attributes {
			value := a.Bytes()
			w.u32(uint32(a.Case))
			w.u32(0)
			w.b = append(w.b, value[:]...)
		}
	case GraphCopy:
		w.u32(x.What)
		w.u32(x.Region)
		for _, v := range [...]uint64{x.Dst, x.Src, x.Width, x.Height, x.Depth, x.DstPitch, x.DstSlice, x.SrcPitch, x.SrcSlice} {
			w.u64(v)
		}
	case GraphMemset:
		w.u32(x.Value)
		w.u32(x.Width)
		for _, v := range [...]uint64{x.Dst, x.Pitch, x.Columns, x.Rows} {
			w.u64(v)
		}
	case GraphEvent:
		w.u64(uint64(x))
	}
}

// DecodeGraphRecord decodes a graph record; errors wrap ErrRecord. The parameters
// of kernels are slices of b. Every dependency is an earlier node.
func DecodeGraphRecord(b []byte) ([]GraphNode, error) {
	nodes, err := decodeGraphNodes(b)
	if err != nil {
		return nil, err
	}
	for i, n := range nodes {
		for _, dep := range n.Deps {
			if int64(dep) >= int64(i) {
				return nil, fmt.Errorf("%w: node %d of %d depends on node %d, which is not before it", ErrRecord, i, len(nodes), dep)
			}
		}
	}
	return nodes, nil
}

// DecodeGraphChanges decodes a graph update record: Deps of each node has the
// number of the node that it changes.
func DecodeGraphChanges(b []byte) ([]GraphNode, error) {
	nodes, err := decodeGraphNodes(b)
	if err != nil {
		return nil, err
	}
	for i, n := range nodes {
		if len(n.Deps) != 1 {
			return nil, fmt.Errorf("%w: change %d names %d nodes, want 1", ErrRecord, i, len(n.Deps))
		}
	}
	return nodes, nil
}

func decodeGraphNodes(b []byte) ([]GraphNode, error) {
	d := openRecord(b)
	count := d.count(16, MaxGraphNodes)
	d.u32()
	var nodes []GraphNode
	edges := 0
	for i := 0; i < count && d.err == nil; i++ {
		n := GraphNode{Kind: d.u32(), Flags: d.u32()}
		deps, size := d.count(4, MaxGraphEdges-edges), d.u32()
		edges += deps
		if deps > 0 {
			n.Deps = make([]uint32, deps)
		}
		for k := range n.Deps {
			n.Deps[k] = d.u32()
		}
		if deps%2 != 0 {
			d.u32()
		}
		if n.Flags&^GraphNodeDisabled != 0 || size%8 != 0 || uint64(size) > uint64(len(d.b)-d.pos) {
			d.fail("node %d: invalid flags %#x or body size %d", i, n.Flags, size)
			break
		}
		body := &recordReader{b: d.take(int(size))}
		n.Body = body.graphBody(n.Kind)
		if body.err != nil || body.pos != len(body.b) {
			d.fail("node %d of kind %d: invalid body size %d", i, n.Kind, size)
		}
		nodes = append(nodes, n)
	}
	return nodes, d.err
}

func (d *recordReader) graphAttribute() (v StreamAttrValue) {
	id := int32(d.u32())
	d.u32()
	value := d.take(StreamAttrValueWire)
	switch {
	case d.err != nil:
	case !slices.Contains(graphAttributes[:], id):
		d.fail("unknown attribute %d", id)
	default:
		v = DecodeStreamAttrValue(id, [StreamAttrValueWire]byte(value))
		if r := v.AccessPolicyWindowHitRatio; !(r >= 0 && r <= 1) {
			d.fail("invalid hit ratio %v", r)
		}
	}
	return v
}

func (d *recordReader) graphBody(kind uint32) any {
	switch kind {
	case GraphNodeKernel:
		k := GraphKernel{Function: d.u64()}
		for _, p := range [...]*uint32{&k.Grid[0], &k.Grid[1], &k.Grid[2], &k.Block[0], &k.Block[1], &k.Block[2], &k.Shared, &k.Flags} {
			*p = d.u32()
		}
		n := d.count(1, MaxParamBytes)
		attributes := d.count(8+StreamAttrValueWire, MaxGraphAttributes)
		k.Params = d.take(n)
		d.take((8 - n%8) % 8)
		for range attributes {
			k.Attributes = append(k.Attributes, d.graphAttribute())
		}
		return k
	case GraphNodeCopy:
		c := GraphCopy{What: d.u32(), Region: d.u32()}
		for _, p := range [...]*uint64{&c.Dst, &c.Src, &c.Width, &c.Height, &c.Depth, &c.DstPitch, &c.DstSlice, &c.SrcPitch, &c.SrcSlice} {
			*p = d.u64()
		}
		return c
	case GraphNodeMemset:
		m := GraphMemset{Value: d.u32(), Width: d.u32()}
		for _, p := range [...]*uint64{&m.Dst, &m.Pitch, &m.Columns, &m.Rows} {
			*p = d.u64()
		}
		return m
	case GraphNodeEventWait, GraphNodeEventRecord:
		return GraphEvent(d.u64())
	case GraphNodeEmpty:
	default:
		d.fail("unknown kind %d", kind)
	}
	return nil
}
