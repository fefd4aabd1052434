package local

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree returns layers: pairs of a file and the one below it; disk is written
// to.
func tree(disk string, pairs ...string) *volumeMeta {
	m := &volumeMeta{Disk: disk}
	for i := 0; i < len(pairs); i += 2 {
		m.Layers = append(m.Layers, layer{pairs[i], pairs[i+1]})
	}
	return m
}

// with adds a snapshot of the file.
func (m *volumeMeta) with(file string) *volumeMeta {
	m.Snapshots = append(m.Snapshots, snapshotMeta{ID: "snap-1", File: file})
	return m
}

func TestMergeable(t *testing.T) {
	for name, c := range map[string]struct {
		m    *volumeMeta
		want []merging
	}{
		"alone":            {tree("a", "a", ""), nil},
		"named":            {tree("b", "b", "a", "a", "").with("a"), nil},
		"unnamed":          {tree("b", "b", "a", "a", ""), []merging{{"b", "a"}}},
		"two stand on it":  {tree("c", "c", "a", "b", "a", "a", "").with("b"), nil},
		"in the middle":    {tree("c", "c", "b", "b", "a", "a", "").with("a"), []merging{{"c", "b"}}},
		"below what named": {tree("c", "c", "b", "b", "a", "a", "").with("b"), []merging{{"b", "a"}}},
	} {
		if diff := cmp.Diff(c.want, c.m.mergeable()); diff != "" {
			t.Errorf("mergeable of %s: mismatch (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrune(t *testing.T) {
	m := tree("d", "d", "a", "c", "b", "b", "a", "a", "").with("b")
	m.prune()
	if diff := cmp.Diff(tree("d", "d", "a", "b", "a", "a", "").Layers, m.Layers); diff != "" {
		t.Errorf("layers after prune: mismatch (-want +got):\n%s", diff)
	}
}

func TestMerged(t *testing.T) {
	up := tree("d", "d", "c", "c", "b", "b", "a", "a", "").with("c")
	up.mergedUp(merging{Child: "c", Into: "b"})
	if diff := cmp.Diff(tree("d", "d", "c", "c", "a", "a", "").Layers, up.Layers); diff != "" || up.Snapshots[0].File != "c" {
		t.Errorf("layers after mergedUp: snapshot of %s, want c; mismatch (-want +got):\n%s", up.Snapshots[0].File, diff)
	}
	down := tree("d", "d", "c", "c", "b", "b", "a", "a", "").with("c")
	down.mergedDown(merging{Child: "c", Into: "b"})
	if diff := cmp.Diff(tree("d", "d", "b", "b", "a", "a", "").Layers, down.Layers); diff != "" || down.Snapshots[0].File != "b" {
		t.Errorf("layers after mergedDown: snapshot of %s, want b; mismatch (-want +got):\n%s", down.Snapshots[0].File, diff)
	}
}

// TestOldMeta checks that metadata of versions 1 and 2 is one layer, and that
// a chain with a loop ends.
func TestOldMeta(t *testing.T) {
	for raw, disk := range map[string]string{
		`{"version":1,"image":"img-1"}`:                          "disk",
		`{"version":2,"disk":"disk-7","epoch":7}`:                "disk-7",
		`{"version":3,"disk":"../../x","layers":[]}`:             "x",
		`{"version":3,"disk":"disk","layers":[{"file":"disk"}]}`: "disk",
	} {
		var m volumeMeta
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		m.normal()
		if m.Disk != disk || len(m.Layers) != 1 || m.Layers[0].File != disk {
			t.Errorf("metadata %s = %+v, want the one layer %s", raw, m, disk)
		}
	}
	if got := tree("a", "a", "b", "b", "a").chain("a"); len(got) > 3 {
		t.Errorf("chain with a loop = %v, want at most 3 files", got)
	}
}
