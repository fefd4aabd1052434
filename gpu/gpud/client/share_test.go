package client

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// A gpud that does not know shared memory would end the connection for a line about it:
// it gets none.
func TestOldGpudDoesNotShare(t *testing.T) {
	f := startFake(t)
	h, err := DialWorker(t.Context(), f.socket, "v", Options{})
	if err != nil {
		t.Fatal(err)
	}
	token := worker.ShareToken{1}
	if err := h.Share(token, 4096); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("shared: %v, want %v", err, abi.ErrNotSupported)
	}
	if _, err := h.OpenShared(token); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("opened: %v, want %v", err, abi.ErrNotSupported)
	}
	h.Unshare(token, false)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	for _, op := range []string{wire.OpShare, wire.OpOpen, wire.OpUnshare} {
		if lines := f.said(op); len(lines) > 0 {
			t.Errorf("it was told %+v", lines)
		}
	}
}

// Both sides account memory in the same unit.
func TestMemoryUnit(t *testing.T) {
	for _, size := range []uint64{0, 1, 256, 257, wire.MemoryUnit, wire.MemoryUnit + 1, 3_000_001} {
		if got, want := (wire.Share{Size: size}).Bytes(), worker.Accounted(size); got != want {
			t.Errorf("%d bytes count %d with gpud, want %d as with the worker", size, got, want)
		}
	}
}
