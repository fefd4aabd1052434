package agent

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestMachineType(t *testing.T) {
	node := func(types ...string) api.Node {
		return api.Node{Status: api.NodeStatus{Machines: api.NodeMachines{Types: types}}}
	}
	own := []string{"pc-q35-10.0", "pc-q35-9.2", "pc-q35-8.2"}
	for _, c := range []struct {
		name   string
		own    []string
		others []api.Node
		want   string
	}{
		{"alone", own, nil, "pc-q35-10.0"},
		{"another has the same", own, []api.Node{node(own...)}, "pc-q35-10.0"},
		{"another has an older QEMU", own, []api.Node{node(own...), node("pc-q35-9.2", "pc-q35-8.2")}, "pc-q35-9.2"},
		{"another has a newer QEMU", own, []api.Node{node("pc-q35-11.0", "pc-q35-10.0")}, "pc-q35-10.0"},
		{"another does not say", own, []api.Node{node()}, "pc-q35-10.0"},
		{"nothing in common", own, []api.Node{node("pc-q35-2.4")}, "pc-q35-10.0"},
		{"this one does not say", nil, []api.Node{node(own...)}, ""},
	} {
		if got := machineType(c.own, c.others); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestKnows(t *testing.T) {
	if err := knows([]string{"pc-q35-9.2"}, "pc-q35-10.0"); api.CodeOf(err) != api.CodeState {
		t.Errorf("a type that QEMU does not have: %v", err)
	}
	for _, types := range [][]string{nil, {"pc-q35-10.0"}} {
		if err := knows(types, "pc-q35-10.0"); err != nil {
			t.Errorf("%v: %v", types, err)
		}
	}
}
