package model

import "testing"

// TestModelsAreComplete checks that no model lacks a number, or has one that no such
// GPU can have, as programs divide by them.
func TestModelsAreComplete(t *testing.T) {
	for _, name := range Names() {
		m, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name == "" || m.Multiprocessors == 0 || m.Clock == 0 || m.MemoryClock == 0 || m.BusWidth%64 != 0 || m.BusWidth == 0 ||
			m.L2Cache == 0 || m.CopyEngines == 0 || m.PCIDevice == 0 {
			t.Errorf("model %s = %+v, want all numbers set", name, m)
		}
		if m.Threads%32 != 0 || m.Threads < 1024 || m.Blocks == 0 || m.BlockShared+m.ReservedShared > m.SharedBytes || m.BlockShared < 48<<10 || m.DoubleRatio == 0 {
			t.Errorf("model %s, compute capability %d: limits = %+v, want those of a multiprocessor", name, m.Capability, m.Limits)
		}
	}
	if _, err := Find("a1000"); err == nil {
		t.Error("Find of an unknown model: no error, want one")
	}
	if m, err := Find(""); err != nil || m != Default() {
		t.Errorf(`Find("") = %+v, %v; want Default`, m, err)
	}
}
