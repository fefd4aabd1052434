package client

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestOldGpudDoesNotShare checks that a gpud without shared memory, which would end the
// connection at a line about it, receives none.
func TestOldGpudDoesNotShare(t *testing.T) {
	f := startFake(t)
	h, err := DialWorker(t.Context(), f.socket, "v", Options{})
	if err != nil {
		t.Fatal(err)
	}
	token := worker.ShareToken{1}
	if err := h.Share(token, 4096); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("Share = %v, want %v", err, abi.ErrNotSupported)
	}
	if _, err := h.OpenShared(token); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("OpenShared = %v, want %v", err, abi.ErrNotSupported)
	}
	h.Unshare(token, false)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	for _, op := range []string{wire.OpShare, wire.OpOpen, wire.OpUnshare} {
		if lines := f.received(op); len(lines) > 0 {
			t.Errorf("gpud received %+v, want no line about shared memory", lines)
		}
	}
}

// TestMemoryUnit checks that both sides account memory in the same unit.
func TestMemoryUnit(t *testing.T) {
	for _, size := range []uint64{0, 1, 256, 257, wire.MemoryUnit, wire.MemoryUnit + 1, 3_000_001} {
		if got, want := (wire.Share{Size: size}).Bytes(), worker.Accounted(size); got != want {
			t.Errorf("gpud accounts %d bytes as %d, want %d as the worker does", size, got, want)
		}
	}
}
