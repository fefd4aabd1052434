package agent

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// TestALateAnswerBringsNothingBack applies the response to a write after the change
// that assigned the object to another node.
func TestALateAnswerBringsNothingBack(t *testing.T) {
	c := newCache("a")
	put := func(node api.NodeID, revision int64) {
		c.apply(objects.Change{Kind: api.KindInstance, ID: "ins-1", Now: api.Instance{
			Meta: api.Meta{ID: "ins-1", Revision: revision}, Assignment: api.InstanceAssignment{Node: node}}})
	}
	here := func() bool { _, ok := get(c, c.instances, "ins-1"); return ok }
	put("a", 1)
	put("b", 3)
	put("a", 2)
	if here() {
		t.Error("ins-1 is cached after a late response of revision 2, want it dropped since revision 3")
	}
	put("a", 4)
	if !here() {
		t.Error("ins-1 is not cached after revision 4 assigned it to this node again")
	}
}

// TestWhatIsNotThereIsForgotten checks that an object which a response of the store
// added, and which was removed while the watch was interrupted, is dropped with the
// next complete list.
func TestWhatIsNotThereIsForgotten(t *testing.T) {
	c := newCache("a")
	here := api.Instance{Meta: api.Meta{ID: "ins-1", Revision: 4}, Assignment: api.InstanceAssignment{Node: "a"}}
	c.merge(watchcache.Update{All: true})
	c.apply(objects.Change{Kind: api.KindInstance, ID: "ins-1", Now: here})
	keys := c.merge(watchcache.Update{All: true})
	if _, ok := get(c, c.instances, "ins-1"); ok || !slices.Equal(keys, []string{"Instance/ins-1"}) {
		t.Errorf("ins-1 cached: %v, want false; keys to reconcile: %v, want only its own", ok, keys)
	}
}
