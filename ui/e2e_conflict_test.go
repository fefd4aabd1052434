package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestConflict is e2e/conflict.mjs: two windows change the same pool, flavor,
// price book, quota and security group.
func TestConflict(t *testing.T) {
	n := start(t, "--network", "fake")
	n.fill(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := client.Of[api.GPUPool](op).Create(ctx, api.GPUPool{Meta: api.Meta{Name: "big"}, Spec: api.GPUPoolSpec{Mode: "time-sliced", MaxVgpusPerGpu: 2}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Of[api.SecurityGroup](op).Create(ctx, api.SecurityGroup{Meta: api.Meta{Name: "web", Project: "render"},
		Spec: api.SecurityGroupSpec{Rules: []api.SecurityRule{{Direction: "ingress", Protocol: "tcp", Ports: "22"}, {Direction: "egress", Protocol: "any"}}}}); err != nil {
		t.Fatal(err)
	}
	n.tell(t, "conflict.mjs")
}
