package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestHostile is e2e/hostile-forms.mjs: hostile text in the fields of every form of tenants and
// operators, and as stored values.
func TestHostile(t *testing.T) {
	n := start(t, "--network", "fake")
	n.fill(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := client.Of[api.ExternalNetwork](op).Create(ctx, api.ExternalNetwork{Meta: api.Meta{Name: "outside"},
		Spec: api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Gateway4: "203.0.113.1", Ranges4: []string{"203.0.113.10-203.0.113.20"}, Default: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.Volume](op).Create(ctx, api.Volume{Meta: api.Meta{Name: "data", Project: "render"}, Spec: api.VolumeSpec{SizeBytes: 1 << 30}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.Instance](op).Create(ctx, api.Instance{Meta: api.Meta{Name: "web-1", Project: "render"}, Spec: api.InstanceSpec{Flavor: "tiny", Image: "debian-12"}}); err != nil {
		t.Fatal(err)
	}
	n.tell(t, "hostile-forms.mjs")
}
