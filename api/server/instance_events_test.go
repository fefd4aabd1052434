package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestInstanceEvents(t *testing.T) {
	w := newWorld(t)
	member, ctx := w.as(api.RoleMember, w.acme, w.web), t.Context()
	in, err := w.instance(member, "demo")
	if err != nil {
		t.Fatal(err)
	}
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: in.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning})})
	if _, err := member.StopInstance(ctx, in.Meta.ID); err != nil {
		t.Fatal(err)
	}
	viewer := w.as(api.RoleViewer, w.acme, w.web)
	first, err := viewer.InstanceEvents(ctx, "demo", 2, "") // also by its name
	if err != nil || len(first.Items) != 2 || first.Items[0].Operation != "StopInstance" || first.Items[0].State != "Running" || first.Items[1].Operation != "" || first.Items[1].State != "Running" {
		t.Fatalf("first page of events = %+v, %v; want the two latest, StopInstance first", first, err)
	}
	rest, err := viewer.InstanceEvents(ctx, in.Meta.ID, 0, first.Continue)
	if err != nil || rest.Continue != "" || len(rest.Items) != 1 || rest.Items[0].Operation != "CreateInstance" || rest.Items[0].State != "Pending" {
		t.Errorf("last page of events = %+v, %v; want CreateInstance only", rest, err)
	}
	_, err = viewer.InstanceEvents(ctx, in.Meta.ID, 0, "x")
	wantErr(t, err, api.CodeInvalid, "continue")
	_, err = w.as(api.RoleAdmin, w.other, "").InstanceEvents(ctx, in.Meta.ID, 0, "")
	wantErr(t, err, api.CodeNotFound, "")
}
