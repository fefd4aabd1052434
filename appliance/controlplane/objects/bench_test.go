package objects_test

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

func instance(i int, revision int64) api.Event {
	in := api.InstanceSpec{Flavor: "flv-1", Image: "img-1", SSHKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI somebody@example.com"},
		Networks: []api.InstanceNetwork{{Network: "net-1", SecurityGroups: []api.SecurityGroupID{"sg-1", "sg-2"}}}}
	assigned := api.InstanceAssignment{Node: "node-1", Ports: []api.InstancePort{{Network: "net-1", Mac: "06:00:00:00:00:01", Address4: "10.0.0.5"}}}
	id := fmt.Sprintf("ins-%012d", i)
	return api.Event{Type: api.EventPut, Revision: revision, Object: api.Object{Kind: api.KindInstance,
		Meta: api.Meta{ID: id, Name: id, Revision: revision, Organization: "org-1", Project: "prj-1"}, Spec: api.Encode(in),
		Assignment: api.Encode(assigned), Status: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning})}}
}

// BenchmarkSet measures the cost of one more subscriber to 20,000 instances.
//
//	accept  it accepts all of them, already decoded
//	decode  baseline: it decodes them itself
func BenchmarkSet(b *testing.B) {
	const n = 20_000
	events := make([]api.Event, n)
	s := objects.NewSet(objects.Of[api.Instance]())
	for i := range events {
		events[i] = instance(i, int64(i+1))
		if _, _, err := s.Apply(events[i]); err != nil {
			b.Fatal(err)
		}
	}
	all := s.All()
	b.Run("accept", func(b *testing.B) {
		for range b.N {
			own := s.Empty()
			for _, c := range all {
				own.Accept(c)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for range b.N {
			own := s.Empty()
			for _, e := range events {
				if _, _, err := own.Apply(e); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
