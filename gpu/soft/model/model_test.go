package model

import "testing"

// A row that lacks a number, or has one that no such card can have, would be
// what programs divide by.
func TestModelsAreComplete(t *testing.T) {
	for _, name := range Names() {
		m, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name == "" || m.Multiprocessors == 0 || m.Clock == 0 || m.MemoryClock == 0 || m.BusWidth%64 != 0 || m.BusWidth == 0 ||
			m.L2Cache == 0 || m.CopyEngines == 0 || m.PCIDevice == 0 {
			t.Errorf("%s lacks a number: %+v", name, m)
		}
		if m.Threads%32 != 0 || m.Threads < 1024 || m.Blocks == 0 || m.BlockShared+m.ReservedShared > m.SharedBytes || m.BlockShared < 48<<10 || m.DoubleRatio == 0 {
			t.Errorf("%s has limits that no multiprocessor of compute capability %d has: %+v", name, m.Capability, m.Limits)
		}
	}
	if _, err := Find("a1000"); err == nil {
		t.Error("Find found a model that is not there")
	}
	if m, err := Find(""); err != nil || m != Default() {
		t.Errorf(`Find("") = %+v, %v; want Default`, m, err)
	}
}
