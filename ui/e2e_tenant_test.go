package ui_test

import (
	"bytes"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestTenant tests what a tenant needs apart from the instance itself: volumes, networks,
// history, the user's own account, projects. The machines and networks are simulated.
func TestTenant(t *testing.T) {
	n := start(t, "--network", "fake")
	n.fill(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.ExternalNetwork](op).Create(t.Context(), api.ExternalNetwork{Meta: api.Meta{Name: "outside"},
		Spec: api.ExternalNetworkSpec{Cidr4: "203.0.113.0/24", Gateway4: "203.0.113.1", Ranges4: []string{"203.0.113.10-203.0.113.20"}, Default: true}}); err != nil {
		t.Fatal(err)
	}
	disc := make([]byte, 64<<10)
	copy(disc[16*2048:], "\x01CD001\x01")
	medium, err := client.Of[api.Image](op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "live"}, Spec: api.ImageSpec{Format: api.FormatISO, Public: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := op.PutImageContent(t.Context(), medium.Meta.ID, bytes.NewReader(disc), int64(len(disc))); err != nil {
		t.Fatal(err)
	}
	n.tell(t, "tenant.mjs")
}
