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
	if level, id := settledOf(t, tb); level != unsaidLevel || id != "" {
		t.Errorf("tables that say nothing have level %d, id %q", level, id)
	}
	index++
	mustApply(t, tb, logEntry(t, index, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-b", Name: "b", Data: []byte(`{}`)}}}))
	if a := settle(Settlement{Level: Level, ID: "one", Members: []string{"node-a"}}); a.Refused == nil || a.Refused.Code != api.CodeConflict || !strings.Contains(a.Refused.Message, "node-b") {
		t.Errorf("a node that was not asked: %+v", a)
	}
	if level, id := settledOf(t, tb); level != unsaidLevel || id != "" {
		t.Errorf("a refused entry gave level %d, id %q", level, id)
	}
	for i, s := range []Settlement{{Level: Level, ID: "one"}, {Level: Level - 1, ID: "two"}, {Level: Level, ID: "three"}} {
		s.Members = []string{"node-b"}
		if a := settle(s); a.Refused != nil {
			t.Errorf("%d: %+v", i, a)
		}
		if level, id := settledOf(t, tb); level != Level || id != "one" {
			t.Errorf("%d: level %d, id %q; the first id and the highest level stay", i, level, id)
		}
	}
	raw, err := EncodeSettlement(Settlement{Level: Level + 1, Members: []string{"node-b"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tb.apply([]Entry{{index + 1, raw}}); err == nil || !strings.Contains(err.Error(), "install the cluster's release on this node") {
		t.Errorf("a level beyond this program's: %v", err)
	}
}
