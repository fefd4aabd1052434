package agent

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// The answer to a write comes after the news that the object was given away.
func TestALateAnswerBringsNothingBack(t *testing.T) {
	c := newCache("a")
	put := func(node api.NodeID, revision int64) {
		c.apply(api.Event{Type: api.EventPut, Revision: revision, Object: api.Object{Kind: api.KindInstance,
			Meta: api.Meta{ID: "ins-1", Revision: revision}, Assignment: api.Encode(api.InstanceAssignment{Node: node})}})
	}
	here := func() bool { _, ok := get(c, c.instances, "ins-1"); return ok }
	put("a", 1)
	put("b", 3)
	put("a", 2)
	if here() {
		t.Error("it is back")
	}
	put("a", 4)
	if !here() {
		t.Error("given back, and not there")
	}
}
