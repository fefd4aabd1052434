package state

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A batch with claims, and one with amounts, has a version of its own, in a term too.
func TestVersionsOfBatches(t *testing.T) {
	raw, err := EncodeBatch(statetest.Claims("flv-1", "a"))
	if err != nil || raw[0] != claimsVersion {
		t.Errorf("version %d, %v", raw[0], err)
	}
	if raw, err = EncodeBatch(api.Batch{Commands: statetest.Batch(0, 1).Commands[:2]}); err != nil || raw[0] != batchVersion {
		t.Errorf("version %d of a batch without claims, %v", raw[0], err)
	}
	if raw, err = EncodeBatch(statetest.Quotas()); err != nil || raw[0] != tenancyVersion {
		t.Errorf("version %d, %v", raw[0], err)
	}
	if v := InTerm(7, raw)[0]; v != 6 || !ofOneTerm(v) {
		t.Errorf("version %d in a term", v)
	}
}
