package store

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// TestCPUPoliciesNeedTheLevel checks that flavors and instances with a CPU policy are
// refused until the cluster has the level that introduces it, and others are not.
func TestCPUPoliciesNeedTheLevel(t *testing.T) {
	r := replica(t, t.TempDir(), "a", 0)
	put := func(kind api.Kind, spec string) error {
		_, err := r.EncodeBatch(1, api.Batch{At: time.Unix(1, 0), Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: kind, ID: "x", Name: "x", Data: []byte(spec)}}})
		return err
	}
	const dedicated = `{"cpuPolicy":"dedicated"}`
	for _, kind := range []api.Kind{api.KindFlavor, api.KindInstance} {
		if err := put(kind, dedicated); api.CodeOf(err) != api.CodeState {
			t.Errorf("%s with dedicated CPUs before level %d = %v, want wrong_state", kind, state.CPUPolicyLevel, err)
		}
		if err := put(kind, `{}`); err != nil {
			t.Errorf("%s without a CPU policy = %v, want nil", kind, err)
		}
	}
	settled, err := state.EncodeSettlement(state.Settlement{Level: state.CPUPolicyLevel, ID: "0123", Members: []string{"a"}, AuditKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(LogEntry{1, 1, settled}); err != nil {
		t.Fatal(err)
	}
	if _, refused, err := r.Apply(1); refused != nil || err != nil {
		t.Fatalf("apply the settlement: refused with %v, %v", refused, err)
	}
	if err := put(api.KindFlavor, dedicated); err != nil {
		t.Errorf("flavor with dedicated CPUs at level %d = %v, want nil", state.CPUPolicyLevel, err)
	}
}
