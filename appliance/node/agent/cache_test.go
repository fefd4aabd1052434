package agent

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// The answer to a write comes after the news that the object was given away.
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
		t.Error("it is back")
	}
	put("a", 4)
	if !here() {
		t.Error("given back, and not there")
	}
}

// What an answer of the store brought, and was removed while the watch was
// interrupted, is forgotten when everything comes anew.
func TestWhatIsNotThereIsForgotten(t *testing.T) {
	c := newCache("a")
	here := api.Instance{Meta: api.Meta{ID: "ins-1", Revision: 4}, Assignment: api.InstanceAssignment{Node: "a"}}
	c.take(watchcache.News{All: true})
	c.apply(objects.Change{Kind: api.KindInstance, ID: "ins-1", Now: here})
	keys := c.take(watchcache.News{All: true})
	if _, ok := get(c, c.instances, "ins-1"); ok || !slices.Equal(keys, []string{"Instance/ins-1"}) {
		t.Errorf("it is there: %v; keys to look at: %v, want only its own", ok, keys)
	}
}
