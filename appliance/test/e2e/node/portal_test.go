package node_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/portaltest"
)

// TestPortal runs what a new tenant does, only in a browser: from the sign-in page to a CUDA
// program in a real instance, and back to no resources. The story is ui/e2e/machine.mjs.
func TestPortal(t *testing.T) {
	prepared(t)
	portaltest.Built(t)
	w := &world{node: newNode(t, programs(t), t.TempDir(), "--network", "none")}
	w.keepPictures(t)
	// In TestMachine, Debian reads the portal's user data. Here the small guest reads it, which
	// boots in seconds.
	image := "small"
	if layer.Long() {
		image = "debian"
	}
	w.importImage(t, image)
	_, err := client.Of[api.Flavor](w.operator).Create(w.ctx, api.Flavor{Meta: api.Meta{Name: "guest"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 768 * mib, RootBytes: 3 * gib}})
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"desktop", "phone"} {
		t.Run(view, func(t *testing.T) {
			email := view + "@example.com"
			w.customer(t, view, email)
			portaltest.RunStory(t, "machine.mjs", w.log, "PORTAL=http://"+w.listen, "EMAIL="+email, "VIEW="+view, "IMAGE="+image)
			if page, err := client.Of[api.Instance](w.operator).Page(w.ctx, client.Query{}); err != nil || len(page.Items) != 0 {
				t.Errorf("instances after the story = %v (error %v), want none", page.Items, err)
			}
		})
	}
	// An instance's volume is deleted after it.
	patience.Until(t, time.Minute, "no volume is left", func() bool {
		page, err := client.Of[api.Volume](w.operator).Page(w.ctx, client.Query{})
		return err == nil && len(page.Items) == 0
	})
	w.stop()
}

// keepPictures keeps the screenshots of a failed story.
func (w *world) keepPictures(t *testing.T) {
	t.Helper()
	if os.Getenv("BASALT_SHOTS") != "" {
		return // they are kept anyway
	}
	shots := t.TempDir()
	t.Setenv("BASALT_SHOTS", shots)
	failed.Keep(t, func(f failed.Folder) { f.Files(shots + "/*.png") })
}

// customer creates an organization with a project and the user who administers it.
func (w *world) customer(t *testing.T, name, email string) {
	t.Helper()
	org, err := client.Of[api.Organization](w.operator).Create(w.ctx, api.Organization{Meta: api.Meta{Name: name}, Spec: api.OrganizationSpec{DisplayName: name + " Ltd"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.Project](w.operator).Create(w.ctx, api.Project{Meta: api.Meta{Name: "research", Organization: org.Meta.ID}}); err != nil {
		t.Fatal(err)
	}
	u, err := client.Of[api.User](w.operator).Create(w.ctx, api.User{Meta: api.Meta{Name: email, Organization: org.Meta.ID},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: org.Meta.ID}}}})
	if err != nil {
		t.Fatal(err)
	}
	portaltest.SetPassword(t, "http://"+w.listen, u.Link.Token)
}

// log returns the last 4000 bytes of basaltd's log.
func (n *node) log() string {
	raw, _ := os.ReadFile(filepath.Join(n.data, "basaltd.log"))
	return string(raw[max(0, len(raw)-4000):])
}
