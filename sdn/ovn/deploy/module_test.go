package deploy

import (
	"os"
	"path/filepath"
	"testing"
)

// A modprobe that is killed, as by the limit of a slow machine, says nothing about
// the module: the node asks again instead of choosing the userspace datapath.
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
		t.Errorf("a killed modprobe: %v, %v; want an error", has, err)
	}
	if has, err := n.kernelModule(t.Context(), Intent{Datapath: Netdev}); has || err != nil {
		t.Errorf("the userspace datapath needs no module: %v, %v", has, err)
	}
	modprobe("mkdir " + module)
	if has, err := n.kernelModule(t.Context(), Intent{}); !has || err != nil {
		t.Errorf("the next modprobe: %v, %v; want the module", has, err)
	}
	modprobe("exit 1")
	n = &Node{module: filepath.Join(dir, "none")}
	for range 2 {
		if has, err := n.kernelModule(t.Context(), Intent{}); has || err != nil {
			t.Errorf("a kernel without the module: %v, %v", has, err)
		}
		modprobe("kill -9 $$") // is not asked again
	}
}
