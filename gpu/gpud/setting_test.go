package gpud_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// TestInterop checks that interop is off by default, that it survives a restart,
// and that a change applies to sessions that begin afterwards.
func TestInterop(t *testing.T) {
	n := newTestNode(t)
	n.put("a", mib, 0)
	card := softCard(t)
	features := func() uint32 { return n.program(t, card, "a", 8).Shm.Load32(abi.OffFeatures) }
	if got := features(); got != 0 {
		t.Errorf("features = %#x by default, want 0", got)
	}
	if err := n.control.PutGPU(t.Context(), "soft0", wire.GPUSpec{Interop: true}); err != nil {
		t.Fatal(err)
	}
	if got := features(); got != abi.FeatureInterop {
		t.Errorf("features = %#x with interop turned on, want %#x", got, abi.FeatureInterop)
	}
	n.stop()
	n.start()
	if got := features(); got != abi.FeatureInterop {
		t.Errorf("features = %#x after a restart, want %#x", got, abi.FeatureInterop)
	}
	if err := n.control.PutGPU(t.Context(), "soft0", wire.GPUSpec{}); err != nil {
		t.Fatal(err)
	}
	if got := features(); got != 0 {
		t.Errorf("features = %#x after interop was turned off, want 0", got)
	}
}

// TestSwapOfBefore loads the state of an older gpud, which stored only the swap
// of each card.
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
		t.Errorf("GPUs = %+v, %v, want one with 3 MiB of swap and no interop", cards, err)
	}
}
