package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

func settledOf(t *testing.T, tb *tables) (level int, id string) {
	t.Helper()
	if err := tb.read(func(v view) error { level, id = v.level(), v.clusterID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return level, id
}

func TestSettled(t *testing.T) {
	tb := bare(t)
	index := uint64(0)
	settle := func(s settlement) answer {
		t.Helper()
		raw, err := encodeSettled(s)
		if err != nil {
			t.Fatal(err)
		}
		index++
		answers, _ := mustApply(t, tb, entry{index, raw})
		return answers[0]
	}
	if level, id := settledOf(t, tb); level != unsaidLevel || id != "" {
		t.Errorf("tables that say nothing have level %d, id %q", level, id)
	}
	index++
	mustApply(t, tb, logEntry(t, index, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-b", Name: "b", Data: []byte(`{}`)}}}))
	if a := settle(settlement{Level: Level, ID: "one", Members: []string{"node-a"}}); a.refused == nil || a.refused.Code != api.CodeConflict || !strings.Contains(a.refused.Message, "node-b") {
		t.Errorf("a node that was not asked: %+v", a)
	}
	if level, id := settledOf(t, tb); level != unsaidLevel || id != "" {
		t.Errorf("a refused entry gave level %d, id %q", level, id)
	}
	for i, s := range []settlement{{Level: Level, ID: "one"}, {Level: Level - 1, ID: "two"}, {Level: Level, ID: "three"}} {
		s.Members = []string{"node-b"}
		if a := settle(s); a.refused != nil {
			t.Errorf("%d: %+v", i, a)
		}
		if level, id := settledOf(t, tb); level != Level || id != "one" {
			t.Errorf("%d: level %d, id %q; the first id and the highest level stay", i, level, id)
		}
	}
	raw, err := encodeSettled(settlement{Level: Level + 1, Members: []string{"node-b"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := tb.apply([]entry{{index + 1, raw}}); err == nil || !strings.Contains(err.Error(), "install the cluster's release on this node") {
		t.Errorf("a level beyond this program's: %v", err)
	}
}

// A new cluster begins with its level and its id, which all members come to
// know, and which their promises keep.
func TestClusterHasAnID(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 1)
	_, want, err := c.store(c.leader()).Settled()
	if err != nil || want == "" {
		t.Fatal(want, err)
	}
	for _, id := range c.ids() {
		eventually(t, id+" knows the cluster's id", func() bool {
			level, got, err := c.store(id).Settled()
			return err == nil && level == Level && got == want
		})
	}
	c.close()
	other := open(t, Options{NodeID: "node-1"})
	_, id, err := other.Settled()
	if err != nil || id == "" || id == want {
		t.Errorf("another cluster has the id %q, %v", id, err)
	}
	other.Close()
	dir := filepath.Join(c.options.Dir, "node-1")
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(other.options.Dir))); err != nil {
		t.Fatal(err)
	}
	refused(t, one(dir, "node-1"), "it is of cluster "+id+", and this node is a member of "+want)
}

// A cluster of before there were levels gets one when all are asked.
func TestRaise(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 1)
	for _, id := range c.ids() {
		eventually(t, "all have it", func() bool { n, _, _ := crashNumber(c.store(id), "a", 0); return n == 1 })
		if err := c.store(id).tables.db.Update(func(tx *bbolt.Tx) error { // as an older release made them
			return errors.Join(tx.Bucket(bucketMeta).Delete(metaLevel), tx.Bucket(bucketMeta).Delete(metaID))
		}); err != nil {
			t.Fatal(err)
		}
	}
	s := c.store(c.leader())
	if err := s.Raise(t.Context(), s.LeadTerm(), Level, []string{"node-0", "node-1"}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("a member was not asked: %v", err)
	}
	if err := s.Raise(t.Context(), s.LeadTerm()+1, Level, c.ids()); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("in another term: %v", err)
	}
	if err := s.Raise(t.Context(), s.LeadTerm(), Level+1, c.ids()); err == nil {
		t.Error("beyond what the leader supports")
	}
	if level, _, err := s.Settled(); level != unsaidLevel || err != nil {
		t.Errorf("level %d, %v", level, err)
	}
	if err := s.Raise(t.Context(), s.LeadTerm(), Level, c.ids()); err != nil {
		t.Fatal(err)
	}
	for _, id := range c.ids() {
		eventually(t, id+" has the level", func() bool {
			level, is, err := c.store(id).Settled()
			return err == nil && level == Level && is != ""
		})
	}
}
