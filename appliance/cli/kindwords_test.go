package cli

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestKindWords(t *testing.T) {
	for kind, want := range map[api.Kind][2]string{
		"Instance":        {"an instance", "instances"},
		"GPUPool":         {"a GPU pool", "GPU pools"},
		"APIKey":          {"an API key", "API keys"},
		"FloatingIP":      {"a floating IP", "floating IPs"},
		"GPU":             {"a GPU", "GPUs"},
		"CephCluster":     {"a Ceph cluster", "Ceph clusters"},
		"Card":            {"a payment card", "payment cards"},
		"User":            {"a user", "users"},
		"ExternalNetwork": {"an external network", "external networks"},
	} {
		if got := aKind(kind); got != want[0] {
			t.Errorf("aKind(%s) = %q, want %q", kind, got, want[0])
		}
		if got := kindsWords(kind); got != want[1] {
			t.Errorf("kindsWords(%s) = %q, want %q", kind, got, want[1])
		}
	}
}
