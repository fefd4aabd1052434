package abi

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

func sampleGraph() []GraphNode {
	return []GraphNode{
		{Kind: GraphNodeMemset, Body: GraphMemset{Value: 7, Width: 4, Dst: 0x1000, Pitch: 64, Columns: 3, Rows: 2}},
		{Kind: GraphNodeKernel, Deps: []uint32{0}, Body: GraphKernel{
			Function: 9, Grid: [3]uint32{1, 2, 3}, Block: [3]uint32{4, 5, 6}, Shared: 7, Flags: 1, Params: []byte{1, 2, 3},
			Attributes: []StreamAttrValue{{Case: 8, Priority: -3}, {Case: 1, AccessPolicyWindowBasePtr: 9, AccessPolicyWindowNumBytes: 8, AccessPolicyWindowHitRatio: 0.5, AccessPolicyWindowHitProp: 2, AccessPolicyWindowMissProp: 1}},
		}},
		{Kind: GraphNodeCopy, Flags: GraphNodeDisabled, Deps: []uint32{0}, Body: GraphCopy{
			What: GraphCopyDtoH, Region: 3, Dst: 4, Src: 5, Width: 6, Height: 7, Depth: 8, DstPitch: 9, DstSlice: 10, SrcPitch: 11, SrcSlice: 12,
		}},
		{Kind: GraphNodeEmpty, Deps: []uint32{1, 2}},
		{Kind: GraphNodeEventRecord, Deps: []uint32{3, 0, 1}, Body: GraphEvent(12)},
	}
}

func TestGraphRecord(t *testing.T) {
	want := sampleGraph()
	b := AppendGraphRecord(nil, want)
	got, err := DecodeGraphRecord(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	for n := range b {
		if _, err := DecodeGraphRecord(b[:n]); !errors.Is(err, ErrRecord) {
			t.Fatalf("decode of %d of %d bytes = %v, want %v", n, len(b), err, ErrRecord)
		}
	}
}

func TestGraphRecordRefusals(t *testing.T) {
	for name, nodes := range map[string][]GraphNode{
		"itself":                 {{Kind: GraphNodeEmpty, Deps: []uint32{0}}},
		"a later":                {{Kind: GraphNodeEmpty, Deps: []uint32{1}}, {Kind: GraphNodeEmpty}},
		"no such":                {{Kind: GraphNodeEmpty}, {Kind: GraphNodeEmpty, Deps: []uint32{1 << 31}}},
		"kind":                   {{Kind: 3}},
		"flags":                  {{Kind: GraphNodeEmpty, Flags: 2}},
		"body":                   {{Kind: GraphNodeEmpty, Body: GraphEvent(1)}},
		"no body":                {{Kind: GraphNodeKernel}},
		"params":                 {{Kind: GraphNodeKernel, Body: GraphKernel{Params: make([]byte, MaxParamBytes+1)}}},
		"synchronization policy": {{Kind: GraphNodeKernel, Body: GraphKernel{Attributes: []StreamAttrValue{{Case: 3}}}}},
		"hit ratio":              {{Kind: GraphNodeKernel, Body: GraphKernel{Attributes: []StreamAttrValue{{Case: 1, AccessPolicyWindowHitRatio: 1.5}}}}},
		"attributes":             {{Kind: GraphNodeKernel, Body: GraphKernel{Attributes: slices.Repeat([]StreamAttrValue{{Case: 8}}, MaxGraphAttributes+1)}}},
		"edges":                  {{Kind: GraphNodeEmpty}, {Kind: GraphNodeEmpty, Deps: make([]uint32, MaxGraphEdges+1)}},
		"nodes":                  make([]GraphNode, MaxGraphNodes+1),
	} {
		if _, err := DecodeGraphRecord(AppendGraphRecord(nil, nodes)); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: decode = %v, want %v", name, err, ErrRecord)
		}
	}
	if _, err := DecodeGraphChanges(AppendGraphRecord(nil, sampleGraph())); !errors.Is(err, ErrRecord) {
		t.Errorf("decode of an update without a node number = %v, want %v", err, ErrRecord)
	}
}

// FuzzGraphRecord checks that a record that is accepted respects the limits, and
// is encoded to an equivalent record.
func FuzzGraphRecord(f *testing.F) {
	f.Add(AppendGraphRecord(nil, sampleGraph()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DecodeGraphChanges(b)
		nodes, err := DecodeGraphRecord(b)
		if err != nil {
			return
		}
		again, err := DecodeGraphRecord(AppendGraphRecord(nil, nodes))
		if err != nil || len(again) != len(nodes) {
			t.Fatalf("%+v was encoded and decoded as %+v, %v, want the same", nodes, again, err)
		}
		for i, n := range nodes {
			if n.Kind != again[i].Kind || len(n.Deps) != len(again[i].Deps) {
				t.Fatalf("node %d = %+v, want %+v", i, again[i], n)
			}
		}
	})
}
