package server_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestWatchOfAllKinds checks that a watch that names no kinds, as the portal's, delivers
// the changes of every kind of the API that an operator sees.
func TestWatchOfAllKinds(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	missing := map[api.Kind]bool{}
	for _, k := range api.Kinds() {
		if k.Kind == api.KindUsageRecord || k.Kind == api.KindSSHKey { // rows of no watch, and a user's own
			continue
		}
		c := api.Command{Op: api.OpPutSpec, Kind: k.Kind, ID: k.IDPrefix + "-0000000000aa", Name: "watched", Data: api.Encode(struct{}{})}
		if k.Scope != api.OfCluster {
			c.Organization = w.acme
		}
		if k.Scope == api.OfProject {
			c.Project = w.web
		}
		w.Apply(t, c)
		missing[k.Kind] = true
	}
	for e, err := range w.op.Watch(ctx, 0) {
		if err != nil {
			t.Fatalf("watch: %v; not delivered: %v", err, missing)
		}
		if e.Type == api.EventSync {
			break
		}
		if e.Object.Meta.Name == "watched" {
			delete(missing, e.Object.Kind)
		}
	}
	if len(missing) > 0 {
		t.Errorf("kinds whose objects the watch does not deliver = %v, want none", missing)
	}
}
