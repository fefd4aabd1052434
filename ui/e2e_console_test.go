package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestConsole uses an instance's consoles in a browser: the simulated machine echoes on its
// serial port, and its screen shows coloured bars.
func TestConsole(t *testing.T) {
	n := start(t)
	n.fill(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	org, err := client.Of[api.Organization](op).Get(t.Context(), "acme", client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	project, err := client.Of[api.Project](op).Get(t.Context(), "render", client.Query{Organization: org.Meta.ID})
	if err != nil {
		t.Fatal(err)
	}
	in, err := client.Of[api.Instance](op).Create(t.Context(), api.Instance{Meta: api.Meta{Name: "train-1", Organization: org.Meta.ID, Project: project.Meta.ID},
		Spec: api.InstanceSpec{Flavor: "tiny", Image: "debian-12"}})
	if err != nil {
		t.Fatal(err)
	}
	n.user(t.Context(), t, op, "vera@example.com", org.Meta.ID, api.Grant{Role: api.RoleViewer, Organization: org.Meta.ID, Project: project.Meta.ID})
	n.tell(t, "console.mjs", "INSTANCE="+in.Meta.ID)
}
