package state

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func settledOf(t *testing.T, tb *tables) (level int, id string) {
	t.Helper()
	if err := tb.read(func(v View) error { level, id = v.Level(), v.ClusterID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return level, id
}

func TestSettled(t *testing.T) {
	tb := bare(t)
	index := uint64(0)
	settle := func(s Settlement) Answer {
		t.Helper()
		raw, err := EncodeSettlement(s)
		if err != nil {
			t.Fatal(err)
		}
		index++
		answers, _ := mustApply(t, tb, Entry{index, raw})
		return answers[0]
	}
	if level, id := settledOf(t, tb); level != defaultLevel || id != "" {
		t.Errorf("tables without a level: level %d, ID %q; want %d and none", level, id, defaultLevel)
	}
	index++
	mustApply(t, tb, logEntry(t, index, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-b", Name: "b", Data: []byte(`{}`)}}}))
	if a := settle(Settlement{Level: Level, ID: "one", Members: []string{"node-a"}}); a.Refused == nil || a.Refused.Code != api.CodeConflict || !strings.Contains(a.Refused.Message, "node-b") {
		t.Errorf("answer to a settlement without the member node-b = %+v, want it refused with a conflict that names the node", a)
	}
	if level, id := settledOf(t, tb); level != defaultLevel || id != "" {
		t.Errorf("after a refused settlement: level %d, ID %q; want %d and none", level, id, defaultLevel)
	}
	for i, s := range []Settlement{{Level: Level, ID: "one"}, {Level: Level - 1, ID: "two"}, {Level: Level, ID: "three"}} {
		s.Members = []string{"node-b"}
		if a := settle(s); a.Refused != nil {
			t.Errorf("settlement %d was refused: %+v", i, a)
		}
		if level, id := settledOf(t, tb); level != Level || id != "one" {
			t.Errorf("after settlement %d: level %d, ID %q; want %d and \"one\"", i, level, id, Level)
		}
	}
	raw, err := EncodeSettlement(Settlement{Level: Level + 1, Members: []string{"node-b"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tb.apply([]Entry{{index + 1, raw}}); err == nil || !strings.Contains(err.Error(), "install the cluster's release on this node") {
		t.Errorf("apply a level above this program's: %v, want a TooOld error", err)
	}
}
