package deploy

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKilledModprobeIsNoAnswer checks that after a modprobe that was killed,
// as by the time limit on a slow machine, the node tries again instead of
// choosing the userspace datapath.
func TestKilledModprobeIsNoAnswer(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	module := filepath.Join(dir, "module")
	modprobe := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "modprobe"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n := &Node{module: module}
	modprobe("kill -9 $$")
	if has, err := n.kernelModule(t.Context(), Intent{}); has || err == nil {
		t.Errorf("kernelModule with a killed modprobe = %v, %v; want an error", has, err)
	}
	if has, err := n.kernelModule(t.Context(), Intent{Datapath: Netdev}); has || err != nil {
		t.Errorf("kernelModule for the userspace datapath = %v, %v; want false without an error", has, err)
	}
	modprobe("mkdir " + module)
	if has, err := n.kernelModule(t.Context(), Intent{}); !has || err != nil {
		t.Errorf("kernelModule with a working modprobe = %v, %v; want true", has, err)
	}
	modprobe("exit 1")
	n = &Node{module: filepath.Join(dir, "none")}
	for range 2 {
		if has, err := n.kernelModule(t.Context(), Intent{}); has || err != nil {
			t.Errorf("kernelModule without the module = %v, %v; want false", has, err)
		}
		modprobe("kill -9 $$") // is not run again
	}
}
