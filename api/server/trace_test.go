package server_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

type tracer struct{ asked api.TraceQuestion }

func (t *tracer) Trace(_ context.Context, q api.TraceQuestion) (api.NetworkTrace, error) {
	t.asked = q
	return api.NetworkTrace{Passes: true, Lines: []string{"it goes"}}, nil
}

// TestTraceNetwork checks that a project's key traces in its own networks only, and an
// operator's in all.
func TestTraceNetwork(t *testing.T) {
	tr := &tracer{}
	w := worldOf(t, servertest.StartWith(t, func(o *server.Options) { o.Tracer = tr }))
	one := must(t, ret(w.instance(w.op, "one"))).v
	viewer, admin, stranger := w.as(api.RoleViewer, w.acme, w.web), w.as(api.RoleAdmin, w.acme, ""), w.as(api.RoleMember, w.other, w.theirs)

	got, err := viewer.TraceNetwork(t.Context(), "one", "::ffff:198.51.100.1", "tcp/443", "")
	want := api.TraceQuestion{Project: api.ProjectID(w.web), From: api.TraceEnd{Instance: api.InstanceID(one.Meta.ID)},
		To: api.TraceEnd{Address: netip.MustParseAddr("198.51.100.1")}, Packet: "tcp/443"}
	if err != nil || !got.Passes || len(got.Lines) != 1 || tr.asked != want {
		t.Errorf("trace = %+v, error %v, query %+v; want query %+v", got, err, tr.asked, want)
	}
	if _, err := w.op.TraceNetwork(t.Context(), one.Meta.ID, "10.0.0.1", "icmp", ""); err != nil || tr.asked.Project != "" {
		t.Errorf("trace by an operator: error %v, query %+v; want no project", err, tr.asked)
	}
	if _, err := admin.TraceNetwork(t.Context(), "10.0.0.1", "one", "icmp", "web"); err != nil || tr.asked.Project != api.ProjectID(w.web) {
		t.Errorf("trace by an admin in project web: error %v, query %+v; want that project", err, tr.asked)
	}
	_, err = stranger.TraceNetwork(t.Context(), one.Meta.ID, "10.0.0.1", "icmp", "")
	wantErr(t, err, api.CodeInvalid, "from")
	_, err = stranger.TraceNetwork(t.Context(), "10.0.0.1", one.Meta.ID, "icmp", "")
	wantErr(t, err, api.CodeInvalid, "to")
	_, err = stranger.TraceNetwork(t.Context(), "10.0.0.1", "10.0.0.2", "icmp", w.web)
	wantErr(t, err, api.CodeInvalid, "project")
	_, err = admin.TraceNetwork(t.Context(), "10.0.0.1", "10.0.0.2", "icmp", "")
	wantErr(t, err, api.CodeInvalid, "project")
	_, err = newWorld(t).op.TraceNetwork(t.Context(), "10.0.0.1", "10.0.0.2", "icmp", "")
	wantErr(t, err, api.CodeUnavailable, "")
}
