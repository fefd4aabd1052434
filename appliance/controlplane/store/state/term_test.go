package state

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A batch with claims, and one with amounts, has a version of its own, also when
// restricted to a term.
func TestVersionsOfBatches(t *testing.T) {
	raw, err := EncodeBatch(statetest.Claims("flv-1", "a"))
	if err != nil || raw[0] != claimsVersion {
		t.Errorf("version of a batch with claims = %d, %v; want %d", raw[0], err, claimsVersion)
	}
	if raw, err = EncodeBatch(api.Batch{Commands: statetest.Batch(0, 1).Commands[:2]}); err != nil || raw[0] != batchVersion {
		t.Errorf("version of a batch without claims = %d, %v; want %d", raw[0], err, batchVersion)
	}
	if raw, err = EncodeBatch(statetest.Quotas()); err != nil || raw[0] != tenancyVersion {
		t.Errorf("version of a batch with amounts = %d, %v; want %d", raw[0], err, tenancyVersion)
	}
	if v := InTerm(7, raw)[0]; v != 6 || !ofOneTerm(v) {
		t.Errorf("version of a batch with amounts in one term = %d, of one term %v; want 6 and true", v, ofOneTerm(v))
	}
}
