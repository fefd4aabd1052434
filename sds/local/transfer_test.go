package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

func TestMoveConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("runs qemu-img some dozen times")
	}
	drivertest.RunMoves(t, func(t *testing.T) (from, to drivertest.Bench) {
		q := drivertest.QEMU{}
		one := func() drivertest.Bench {
			return drivertest.Bench{Driver: open(t, Options{Limits: drivertest.Limits}), Disk: q, Start: q.Start}
		}
		return one(), one()
	})
}

// TestHostileTransfer checks that what a node sends cannot create files outside of the
// volume, nor more than a volume has.
func TestHostileTransfer(t *testing.T) {
	good := manifest{Volume: volumeMeta{Version: volumeVersion, Disk: diskName, Layers: []layer{{File: diskName}}}, Files: []transferFile{{diskName, 4096}}}
	for name, change := range map[string]func(m *manifest){
		"a path":               func(m *manifest) { m.Files = append(m.Files, transferFile{"disk/../../x", 1}) },
		"another file":         func(m *manifest) { m.Files = append(m.Files, transferFile{"meta.json", 1}) },
		"a claim":              func(m *manifest) { m.Files = append(m.Files, transferFile{"owner-1", 1}) },
		"a file twice":         func(m *manifest) { m.Files = append(m.Files, m.Files[0]) },
		"a negative size":      func(m *manifest) { m.Files[0].SizeBytes = -1 },
		"a large state":        func(m *manifest) { m.Files = append(m.Files, transferFile{stateName(1), sds.MaxStateBytes + 1}) },
		"a large layer":        func(m *manifest) { m.Files[0].SizeBytes = drivertest.Limits.MaxVirtualBytes * 3 },
		"no files":             func(m *manifest) { m.Files = nil },
		"many files":           func(m *manifest) { m.Files = make([]transferFile, maxTransfer+1) },
		"a layer without file": func(m *manifest) { m.Volume.Layers = append(m.Volume.Layers, layer{File: "disk.7"}) },
		"a disk without file":  func(m *manifest) { m.Volume.Disk = "disk.7" },
		"a snapshot of a state": func(m *manifest) {
			m.Volume.Snapshots = []snapshotMeta{{ID: "snap-1", File: "disk.9"}}
		},
		"a clone":         func(m *manifest) { m.Volume.From = &snapshotRef{"vol-2", "snap-2"} },
		"a merge":         func(m *manifest) { m.Volume.Merging = &merging{"disk.1", "disk"} },
		"a newer version": func(m *manifest) { m.Volume.Version = volumeVersion + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Limits: drivertest.Limits})
			raw, err := json.Marshal(good)
			if err != nil {
				t.Fatal(err)
			}
			var m manifest
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			change(&m)
			imports(t, s, m)
		})
	}
	for name, h := range map[string]extentHeader{
		"another file":   {File: 1, Length: 1},
		"beyond the end": {Offset: 4096, Length: 1},
		"overflow":       {Offset: ^uint64(0), Length: 2},
		"a wrong sum":    {File: endOfTransfer, Offset: 7},
		"too long":       {Length: maxExtent + 1},
	} {
		t.Run("extent: "+name, func(t *testing.T) {
			imports(t, open(t, Options{Limits: drivertest.Limits}), good, h)
		})
	}
}

// imports checks that the transfer is refused and leaves nothing.
func imports(t *testing.T, s *Store, m manifest, extents ...extentHeader) {
	t.Helper()
	var b bytes.Buffer
	if err := writeManifest(&b, m); err != nil {
		t.Fatal(err)
	}
	for _, h := range append(extents, extentHeader{File: endOfTransfer}) {
		b.Write(h.append(nil))
		if h.File != endOfTransfer {
			b.Write(make([]byte, 16))
		}
	}
	if v, err := s.ImportVolume(t.Context(), sds.VolumeImport{ID: "vol-1", Content: &b}); err == nil {
		t.Errorf("ImportVolume = %+v, want an error", v)
	}
	left, err := os.ReadDir(filepath.Join(s.opt.Dir, volumes))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the pool: %v, %v, want nothing", left, err)
	}
}

// TestSharedPoolsDoNotMove checks that a volume which all nodes have is not copied.
func TestSharedPoolsDoNotMove(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), Shared: true})
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Exportable":    s.Exportable(t.Context(), "vol-1"),
		"DiscardVolume": s.DiscardVolume(t.Context(), "vol-1"),
	} {
		if api.CodeOf(err) != api.CodeState {
			t.Errorf("%s of a volume in a shared pool = %v, want code %s", what, err, api.CodeState)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(transferMagic + "\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := readManifest(bytes.NewReader(raw))
		if err != nil || m.check(drivertest.Limits.WithDefaults()) != nil {
			return
		}
		for _, x := range m.Files {
			if filepath.Base(x.Name) != x.Name {
				t.Errorf("accepted file %q, want names without a path", x.Name)
			}
		}
		if n := binary.BigEndian.Uint32(raw[len(transferMagic):]); n > maxManifest {
			t.Errorf("accepted a description of %d bytes", n)
		}
	})
}
