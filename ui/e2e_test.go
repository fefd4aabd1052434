package ui_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/daemontest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/portaltest"
)

// TestPortal drives the portal in a real browser against a real basaltd whose hypervisor is
// simulated: machines do not really run, and everything else is as on a node. The checks are in
// e2e/portal.mjs.
func TestPortal(t *testing.T) {
	n := start(t)
	n.fill(t)
	n.tell(t, "portal.mjs")
}

// start starts a basaltd with simulated machines and further options.
func start(t *testing.T, more ...string) daemon {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts a basaltd and a browser: two minutes")
	}
	portaltest.Built(t)
	t.Parallel() // a story mostly waits
	return daemon{daemontest.Start(t, "fake:", "basalt_fake", more...)}
}

// tell runs a story of e2e in Chromium, with further variables in its environment.
func (n daemon) tell(t *testing.T, story string, env ...string) {
	t.Helper()
	checkCommands(t, portaltest.RunStory(t, story, n.Log, append([]string{"PORTAL=" + n.URL, "OPERATOR=" + n.Key, "EMAIL=ann@example.com"}, env...)...))
}

type daemon struct{ daemontest.Daemon }

// fill creates an organization with a project, an image and an app, Ann, who administers it,
// and an operator.
func (n daemon) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	_, err = client.Of[api.Flavor](op).Create(ctx, api.Flavor{Meta: api.Meta{Name: "tiny"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20, RootBytes: 1 << 30}})
	ok(err)
	image, err := client.Of[api.Image](op).Create(ctx, api.Image{Meta: api.Meta{Name: "debian-12"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	ok(err)
	disk := make([]byte, 1<<20)
	disk[510], disk[511] = 0x55, 0xaa // a boot sector
	_, err = op.PutImageContent(ctx, image.Meta.ID, bytes.NewReader(disk), int64(len(disk)))
	ok(err)
	_, err = client.Of[api.App](op).Create(ctx, api.App{Meta: api.Meta{Name: "notebook"}, Spec: api.AppSpec{DisplayName: "Notebook", Version: "1", Image: "debian-12",
		Description: "Notebooks in the browser.", Notes: "Its token is in /etc/notebook.", Ports: []api.AppPort{{Port: 8888, Name: "Web"}}}})
	ok(err)
	org, err := client.Of[api.Organization](op).Create(ctx, api.Organization{Meta: api.Meta{Name: "acme"},
		Spec: api.OrganizationSpec{DisplayName: "Acme Ltd", Quota: api.Amounts{api.QuotaVCPUs: 16, api.QuotaInstances: 40}}})
	ok(err)
	_, err = client.Of[api.Project](op).Create(ctx, api.Project{Meta: api.Meta{Name: "render", Organization: org.Meta.ID}, Spec: api.ProjectSpec{Quota: api.Amounts{api.QuotaVCPUs: 8}}})
	ok(err)
	n.user(ctx, t, op, "ann@example.com", org.Meta.ID, api.Grant{Role: api.RoleAdmin, Organization: org.Meta.ID})
	n.user(ctx, t, op, "op@example.com", "", api.Grant{Role: api.RoleOperator})
}

func (n daemon) user(ctx context.Context, t *testing.T, op *client.API, email, org string, grant api.Grant) {
	t.Helper()
	u, err := client.Of[api.User](op).Create(ctx, api.User{Meta: api.Meta{Name: email, Organization: org},
		Spec: api.UserSpec{DisplayName: "Ann", Grants: []api.Grant{grant}}})
	if err != nil {
		t.Fatal(err)
	}
	portaltest.SetPassword(t, n.URL, u.Link.Token)
}
