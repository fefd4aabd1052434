package local

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// volumeMeta is the metadata of a volume, stored beside its disks. Sizes are
// only in the qcow2 headers.
//
// A volume is a tree of layers, each a file with what its guest wrote over the
// layer below it. Disk is the only one that is written to; the others are
// frozen, and exist because a snapshot names them or because another layer is
// above them.
type volumeMeta struct {
	Version    int         `json:"version"` // 1; 2 with Disk, Epoch and Standalone; 3 with Layers; 4 with Base
	Image      api.ImageID `json:"image,omitempty"`
	Disk       string      `json:"disk,omitempty"` // file that is written to; empty: "disk"
	Epoch      int64       `json:"epoch,omitempty"`
	Standalone bool        `json:"standalone,omitempty"`

	From *snapshotRef `json:"from,omitempty"` // snapshot that it is cloned from
	// Base is the image below the layers of a clone that has layers of its own in place
	// of those of its snapshot, and is standalone, since it was copied to this node.
	Base      api.ImageID    `json:"base,omitempty"`
	Encrypted bool           `json:"encrypted,omitempty"`
	Rollbacks int64          `json:"rollbacks,omitempty"`
	Layers    []layer        `json:"layers,omitempty"` // empty: Disk alone
	Snapshots []snapshotMeta `json:"snapshots,omitempty"`
	Files     int            `json:"files,omitempty"` // number of names of layers used so far
	// Merging is written before a merge and removed after it.
	Merging *merging `json:"merging,omitempty"`
}

type snapshotRef struct {
	Volume api.VolumeID   `json:"volume"`
	ID     api.SnapshotID `json:"id"`
}

type layer struct {
	File  string `json:"file"`
	Below string `json:"below,omitempty"` // file; empty: what the volume is created from, or nothing
}

type snapshotMeta struct {
	ID        api.SnapshotID `json:"id"`
	File      string         `json:"file"` // layer with its content
	SizeBytes int64          `json:"sizeBytes"`
	CreatedAt time.Time      `json:"createdAt"`
	// Making: a machine may still write to File, and was told to switch to Disk,
	// which is directly above.
	Making bool `json:"making,omitempty"`
}

// merging is a merge of Child into the layer Into below it: Into gets the
// content of Child, and then its name.
type merging struct {
	Child string `json:"child"`
	Into  string `json:"into"`
}

const volumeVersion = 4

// normal sets the values that older versions omit.
func (m *volumeMeta) normal() {
	if m.Disk == "" {
		m.Disk = diskName
	}
	m.Disk = filepath.Base(m.Disk)
	if len(m.Layers) == 0 {
		m.Layers = []layer{{File: m.Disk}}
	}
}

// clone reports whether the volume reads from a snapshot of another volume.
func (m *volumeMeta) clone() bool { return m.From != nil && !m.Standalone }

// image returns the image below the layers of a volume that is not a clone; empty: none.
func (m *volumeMeta) image() api.ImageID {
	if m.Standalone {
		return m.Base
	}
	return m.Image
}

func (m *volumeMeta) ref() sds.SnapshotRef {
	if m.From == nil {
		return sds.SnapshotRef{}
	}
	return sds.SnapshotRef{Volume: m.From.Volume, ID: m.From.ID}
}

// newFile returns the name of another layer.
func (m *volumeMeta) newFile() string {
	m.Files++
	return fmt.Sprintf("%s.%d", diskName, m.Files)
}

func (m *volumeMeta) below(file string) string {
	for _, l := range m.Layers {
		if l.File == file {
			return l.Below
		}
	}
	return ""
}

// chain returns the files from file downwards.
func (m *volumeMeta) chain(file string) []string {
	var chain []string
	for file != "" && len(chain) <= len(m.Layers) {
		chain = append(chain, file)
		file = m.below(file)
	}
	return chain
}

func (m *volumeMeta) children(file string) []string {
	var all []string
	for _, l := range m.Layers {
		if l.Below == file {
			all = append(all, l.File)
		}
	}
	return all
}

func (m *volumeMeta) snapshot(id api.SnapshotID) *snapshotMeta {
	for i := range m.Snapshots {
		if m.Snapshots[i].ID == id {
			return &m.Snapshots[i]
		}
	}
	return nil
}

// making returns the snapshot that is being created; nil: none.
func (m *volumeMeta) making() *snapshotMeta {
	for i := range m.Snapshots {
		if m.Snapshots[i].Making {
			return &m.Snapshots[i]
		}
	}
	return nil
}

func (m *volumeMeta) named(file string) bool {
	return slices.ContainsFunc(m.Snapshots, func(s snapshotMeta) bool { return s.File == file })
}

// prune removes the layers that neither the volume nor a snapshot reads.
func (m *volumeMeta) prune() {
	read := map[string]bool{}
	for _, file := range m.chain(m.Disk) {
		read[file] = true
	}
	for _, s := range m.Snapshots {
		for _, file := range m.chain(s.File) {
			read[file] = true
		}
	}
	m.Layers = slices.DeleteFunc(m.Layers, func(l layer) bool { return !read[l.File] })
}

// mergeable returns the possible merges: of a layer that is only needed by one
// layer above it.
func (m *volumeMeta) mergeable() []merging {
	var all []merging
	for _, l := range m.Layers {
		if up := m.children(l.File); l.File != m.Disk && !m.named(l.File) && len(up) == 1 {
			all = append(all, merging{Child: up[0], Into: l.File})
		}
	}
	return all
}

// mergedUp records that into's file has child's content and its name.
func (m *volumeMeta) mergedUp(g merging) {
	below := m.below(g.Into)
	m.Layers = slices.DeleteFunc(m.Layers, func(l layer) bool { return l.File == g.Into })
	for i := range m.Layers {
		if m.Layers[i].File == g.Child {
			m.Layers[i].Below = below
		}
	}
	m.Merging = nil
}

// mergedDown records that into has child's content, and that layers above
// child are above into.
func (m *volumeMeta) mergedDown(g merging) {
	m.Layers = slices.DeleteFunc(m.Layers, func(l layer) bool { return l.File == g.Child })
	for i := range m.Layers {
		if m.Layers[i].Below == g.Child {
			m.Layers[i].Below = g.Into
		}
	}
	for i := range m.Snapshots {
		if m.Snapshots[i].File == g.Child {
			m.Snapshots[i].File = g.Into
		}
	}
}
