package offboarding_test

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
)

// The objects of an ended service's organization are deleted, in an order that agents
// can follow, and nothing else; the organization is kept.
func TestEndedServiceLosesAll(t *testing.T) {
	store, at := memstore.New(), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	apply := func(cmds ...api.Command) {
		t.Helper()
		if _, err := store.Apply(t.Context(), api.Batch{At: at, Commands: cmds}); err != nil {
			t.Fatal(err)
		}
	}
	n := byte(0)
	made := func(kind api.Kind, org, project, name string, spec any, finalizers ...string) string {
		t.Helper()
		n++
		id := api.NewID(kind, []byte{0, 0, 0, 0, 0, n})
		apply(api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: name, Organization: org, Project: project, Finalizers: finalizers, Data: api.Encode(spec)})
		return id
	}
	for _, org := range []string{"a", "b"} {
		apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: org, Name: org, Data: []byte(`{}`)})
		project := made(api.KindProject, org, "", "main", api.ProjectSpec{})
		in := made(api.KindInstance, org, project, "machine", api.InstanceSpec{Flavor: "f", Image: "i"}, api.FinalizerAgent)
		made(api.KindVolume, org, project, "root", api.VolumeSpec{Instance: api.InstanceID(in), Root: true}, api.FinalizerAgent)
		made(api.KindVolume, org, project, "data", api.VolumeSpec{Instance: api.InstanceID(in)}, api.FinalizerAgent)
		made(api.KindSnapshot, org, project, "s", api.SnapshotSpec{Volume: "data"}, api.FinalizerAgent)
		made(api.KindSSHGuest, org, project, "machine", struct{}{})
		made(api.KindAPIKey, org, project, "k", api.APIKeySpec{Role: api.RoleMember})
		user := made(api.KindUser, org, "", org+"@example.com", api.UserSpec{})
		made(api.KindSession, "", "", "", api.SessionSpec{User: api.UserID(user)})
		made(api.KindNetwork, org, project, "default", api.NetworkSpec{})
		made(api.KindSecurityGroup, org, project, "default", api.SecurityGroupSpec{})
		made(api.KindFloatingIP, org, project, "ip", api.FloatingIPSpec{})
		made(api.KindLoadBalancer, org, project, "lb", api.LoadBalancerSpec{})
		end := &at
		if org == "b" {
			end = nil
		}
		made(api.KindService, "", "", "whmcs:"+org, api.ServiceSpec{Organization: api.OrganizationID(org), TerminatedAt: end})
	}
	count := func(kind api.Kind, org string) int {
		p, err := store.List(context.Background(), api.ListQuery{Kind: kind, Organization: org, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Items)
	}
	phase := func() api.ServiceStatus {
		p, err := store.List(t.Context(), api.ListQuery{Kind: api.KindService, Name: "whmcs:a", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := api.Decode[api.Service](p.Items[0])
		if err != nil {
			t.Fatal(err)
		}
		return s.Status
	}
	// Agents remove their finalizers from time to time.
	agents := func() {
		for _, kind := range []api.Kind{api.KindInstance, api.KindSnapshot, api.KindVolume} {
			p, err := store.List(t.Context(), api.ListQuery{Kind: kind, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range p.Items {
				if o.Meta.DeletedAt != nil {
					apply(api.Command{Op: api.OpForget, Kind: kind, ID: o.Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent})
				}
			}
		}
	}
	for round := range 12 {
		if err := offboarding.Sweep(t.Context(), store, at); err != nil {
			t.Fatal(err)
		}
		if count(api.KindInstance, "a") > 0 && count(api.KindSnapshot, "a") == 0 || count(api.KindSnapshot, "a") > 0 && count(api.KindVolume, "a") == 0 ||
			count(api.KindVolume, "a") > 0 && count(api.KindProject, "a") == 0 {
			t.Fatalf("round %d: objects were deleted out of order", round)
		}
		if st := phase(); count(api.KindProject, "a") > 0 && (st.Phase != api.ServiceTerminating || st.Reason == "") {
			t.Errorf("round %d: service status = %+v, want Terminating with a reason", round, st)
		}
		if round%2 == 1 {
			agents()
		}
	}
	for _, kind := range []api.Kind{api.KindInstance, api.KindVolume, api.KindSnapshot, api.KindAPIKey, api.KindUser, api.KindNetwork, api.KindSecurityGroup,
		api.KindFloatingIP, api.KindLoadBalancer, api.KindProject} {
		if count(kind, "a") != 0 || count(kind, "b") == 0 {
			t.Errorf("%s objects: %d of the ended service, %d of the other; want 0 and some", kind, count(kind, "a"), count(kind, "b"))
		}
	}
	if a, b := count(api.KindSSHGuest, "a"), count(api.KindSSHGuest, "b"); a != 0 || b != 1 {
		t.Errorf("host key records: %d of the ended service, %d of the other; want 0 and 1", a, b)
	}
	if n := count(api.KindSession, ""); n != 1 {
		t.Errorf("sessions = %d, want 1", n)
	}
	if count(api.KindOrganization, "") != 2 || phase().Phase != api.ServiceTerminated {
		t.Errorf("organizations = %d, service status = %+v; want 2 and Terminated", count(api.KindOrganization, ""), phase())
	}
	if before := store.Revision(); offboarding.Sweep(t.Context(), store, at) != nil || store.Revision() != before {
		t.Errorf("revision after another step = %d, want %d and no error", store.Revision(), before)
	}
}
