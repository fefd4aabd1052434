package gpud_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// Interop is off until it is turned on, is kept, and holds for the sessions that
// begin from then on.
func TestInterop(t *testing.T) {
	n := newTestNode(t)
	n.put("a", mib, 0)
	card := softCard(t)
	features := func() uint32 { return n.program(t, card, "a", 8).Shm.Load32(abi.OffFeatures) }
	if got := features(); got != 0 {
		t.Errorf("features %#x of a host on which nothing was turned on", got)
	}
	if err := n.control.PutGPU(t.Context(), "soft0", wire.GPUSpec{Interop: true}); err != nil {
		t.Fatal(err)
	}
	if got := features(); got != abi.FeatureInterop {
		t.Errorf("features %#x, want interop", got)
	}
	n.stop()
	n.start()
	if got := features(); got != abi.FeatureInterop {
		t.Errorf("features %#x after a restart, want interop", got)
	}
	if err := n.control.PutGPU(t.Context(), "soft0", wire.GPUSpec{}); err != nil {
		t.Fatal(err)
	}
	if got := features(); got != 0 {
		t.Errorf("features %#x after interop was turned off", got)
	}
}

// A gpud of before wrote how much of the host's memory is a card's, by itself.
func TestSwapOfBefore(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	path := filepath.Join(n.cfg.StateDir, "state.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc, "told")
	doc["swaps"] = map[string]uint64{"soft0": 3 * mib}
	if b, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	cards, err := n.control.GPUs(t.Context())
	if err != nil || len(cards) != 1 || cards[0].SwapBytes != 3*mib || cards[0].Interop {
		t.Errorf("%+v, %v: want 3 MiB of swap, no interop", cards, err)
	}
}
