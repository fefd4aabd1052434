package storage

import (
	"testing"

	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

func TestDaemonsOf(t *testing.T) {
	in := deploy.Intent{Mons: []deploy.Mon{{Node: "a"}, {Node: "b"}}, Mgrs: []string{"b"},
		Disks: []deploy.Disk{{Node: "a"}, {Node: "a", Leave: true}, {Node: "c"}}}
	for node, want := range map[string]Daemons{"a": {OSDs: 2, Monitor: true}, "b": {Monitor: true, Manager: true}, "c": {OSDs: 1}, "d": {}} {
		if got := daemonsOf(in, node); got != want {
			t.Errorf("daemons of node %s = %+v, want %+v", node, got, want)
		}
	}
}
