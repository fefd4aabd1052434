package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// Parted is the content of a disk with the partition table of a Table.
const Parted Content = "parted"

// FoundTable is the observed content of a Table's disk.
type FoundTable struct {
	Path    string
	Content Content // Missing, Blank, Parted or Other
	What    string  // description, for Other and Missing
	UUID    string  // of the table
	// Parts are the UUIDs of the OSDs that have a partition.
	Parts     []string
	Devices   []string // of the partitions, in the same order
	FreeBytes int64
}

// nextTables returns the actions for this node's disks with databases.
func nextTables(in Intent, o Observed) []Action {
	var do []Action
	for _, t := range in.Tables {
		for _, f := range o.Tables {
			if t.Node == o.Node && f.Path == t.Path {
				do = append(do, nextTable(t, f)...)
			}
		}
	}
	return do
}

func nextTable(t Table, f FoundTable) []Action {
	refuse := func(why string) []Action { return []Action{{Do: Refuse, Name: t.UUID, Path: t.Path, Why: why}} }
	ours := f.Content == Parted && f.UUID == t.UUID
	switch {
	case t.Leave && ours && len(f.Parts) == 0:
		return []Action{{Do: DropTable, Name: t.UUID, Path: t.Path}}
	case t.Leave || ours:
		return nil
	case f.Content == Missing:
		return refuse("the disk was not found: " + f.What)
	case t.Taken:
		return refuse("its partition table with the databases is no longer on it: the data of the disks that had their database there is lost; release these disks, then this one")
	case f.Content != Blank && !t.Wipe:
		return refuse("the disk is not empty: " + f.What)
	}
	return []Action{{Do: MakeTable, Name: t.UUID, Path: t.Path}}
}

// observeTables observes this node's disks with databases, and which of its OSDs have
// theirs.
func (n Node) observeTables(ctx context.Context, in Intent, o *Observed) error {
	has, device := map[string]bool{}, map[string]string{}
	for _, t := range in.Tables {
		if t.Node != n.ID {
			continue
		}
		f, err := probeTable(ctx, t)
		if err != nil {
			return err
		}
		for i, uuid := range f.Parts {
			has[t.UUID+" "+uuid], device[uuid] = f.UUID == t.UUID, f.Devices[i]
		}
		o.Tables = append(o.Tables, f)
	}
	for _, d := range in.Disks {
		for i := range o.Disks {
			if d.DB != nil && d.Node == n.ID && o.Disks[i].Path == d.Path {
				o.Disks[i].HasDB = has[d.DB.Table+" "+d.UUID]
				if err := n.observeDBMapping(ctx, d, device[d.UUID], &o.Disks[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// probeTable returns the content of a table's disk.
func probeTable(ctx context.Context, t Table) (FoundTable, error) {
	found, err := probe(ctx, "", t.Path)
	f := FoundTable{Path: t.Path, Content: found.Content, What: found.What}
	switch {
	case err != nil:
		return f, err
	case found.Content == OSD || found.Content == Begun || found.Content == Locked:
		f.Content, f.What = Other, "it contains an OSD"
		return f, nil
	case found.Content != Other:
		return f, nil
	}
	g, err := readTable(ctx, t.Path)
	var failed *command.Error
	if err != nil && !errors.As(err, &failed) || g.uuid != t.UUID {
		return f, ctx.Err() // its content is something else
	}
	f.Content, f.What, f.UUID, f.FreeBytes = Parted, "", g.uuid, g.freeBytes()
	for _, p := range g.parts {
		f.Parts, f.Devices = append(f.Parts, p.uuid), append(f.Devices, p.path)
	}
	return f, nil
}

// readTable reads the partition table of a disk. The paths in it are those of the
// kernel, which exist as soon as it knows the partition.
func readTable(ctx context.Context, path string) (gpt, error) {
	dev, err := filepath.EvalSymlinks(path)
	if err != nil {
		return gpt{}, err
	}
	raw, err := command.Exec(ctx, command.Exe{Program: "sfdisk", Args: []string{"--json", dev}, Verb: "--json"})
	if err != nil {
		return gpt{}, fmt.Errorf("read the partition table of %s: %w", path, err)
	}
	return decodeTable(raw)
}

// changeTable creates or removes the table of a disk.
func (n Node) changeTable(ctx context.Context, in Intent, a Action) error {
	t, ok := in.table(a.Name)
	if !ok {
		return fmt.Errorf("disk %s is not in the intent", a.Path)
	}
	f, err := probeTable(ctx, t) // just before the disk is written to
	if err != nil {
		return err
	}
	again := nextTable(t, f)
	if len(again) != 1 || again[0].Do != a.Do {
		return nil // it has changed meanwhile: the next observation decides
	}
	if f.Content != Blank {
		if err := wipe(t.Path); err != nil {
			return err
		}
	}
	if a.Do == DropTable {
		return nil
	}
	return editTable(ctx, t.Path, tableScript(t.UUID))
}

// editTable runs sfdisk and makes the kernel use the result.
func editTable(ctx context.Context, path, script string, operation ...string) error {
	dev, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	x := command.Exe{Program: "sfdisk", Args: sfdiskArgs(dev, operation...), Verb: "write", Stdin: reader(script), Timeout: time.Minute, Stays: true}
	if _, err := command.Exec(ctx, x); err != nil {
		return fmt.Errorf("change the partition table of %s: %w", path, err)
	}
	return updateKernel(ctx, dev)
}

// updateKernel tells the kernel the partitions of a disk, as the node may have been
// killed before it did. A file has none.
func updateKernel(ctx context.Context, dev string) error {
	if st, err := os.Stat(dev); err != nil || st.Mode()&fs.ModeDevice == 0 {
		return err
	}
	if _, err := command.Exec(ctx, command.Exe{Program: "partx", Args: []string{"--update", dev}, Verb: "--update"}); err != nil {
		return fmt.Errorf("tell the kernel the partitions of %s: %w", dev, err)
	}
	return nil
}

// dbOf returns the table and the partition of the OSD's database; ok is false if
// there is no partition.
func dbOf(ctx context.Context, in Intent, d Disk) (t Table, g gpt, p partition, ok bool, err error) {
	t, known := in.table(d.DB.Table)
	if !known {
		return t, g, p, false, errors.New("the disk for its database is not known on this node")
	}
	if g, err = readTable(ctx, t.Path); err != nil {
		return t, g, p, false, fmt.Errorf("the disk for its database cannot be read: %w", err)
	}
	if g.uuid != t.UUID {
		return t, g, p, false, fmt.Errorf("the disk for its database, %s, is not prepared", t.Path)
	}
	p, ok = g.part(d.UUID)
	return t, g, p, ok, nil
}

// prepareDB creates the partition for the database of a new OSD, and links it in the
// OSD's directory.
func (n Node) prepareDB(ctx context.Context, in Intent, d Disk, dir string) error {
	if d.DB == nil {
		return nil
	}
	t, g, p, ok, err := dbOf(ctx, in, d)
	if err == nil && !ok {
		var start, sectors int64
		if start, sectors, err = g.place(d.DB.Bytes); err != nil {
			return err
		}
		if err = editTable(ctx, t.Path, partScript(start, sectors, d.UUID), "--append"); err != nil {
			return err
		}
		_, _, p, ok, err = dbOf(ctx, in, d)
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the partition for the database was not created on %s", t.Path)
	}
	if err := n.present(ctx, t, p); err != nil {
		return err
	}
	if d.Crypt != nil {
		path, err := n.encrypt(ctx, in, d, p.path, dbMappingOf(d.UUID), dbLabel)
		if err != nil {
			return err
		}
		return linkDevice(dir, "block.db", path)
	}
	if err := wipe(p.path); err != nil { // it may have the database of an OSD that is gone
		return err
	}
	return linkDevice(dir, "block.db", p.path)
}

// present makes sure that the kernel knows the partition.
func (n Node) present(ctx context.Context, t Table, p partition) error {
	if _, err := os.Stat(p.path); err == nil {
		return nil
	}
	dev, err := filepath.EvalSymlinks(t.Path)
	if err != nil {
		return err
	}
	if err := updateKernel(ctx, dev); err != nil {
		return err
	}
	_, err = os.Stat(p.path)
	return err
}

// linkDB links the partition with the database of an OSD that is to be started.
func (n Node) linkDB(ctx context.Context, in Intent, uuid, dir string) error {
	for _, d := range in.Disks {
		if d.UUID != uuid || d.DB == nil {
			continue
		}
		t, _, p, ok, err := dbOf(ctx, in, d)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("its database is not on %s any more", t.Path)
		}
		if err := n.present(ctx, t, p); err != nil {
			return err
		}
		path, err := n.content(ctx, d, p.path, dbMappingOf(d.UUID))
		if err != nil {
			return err
		}
		return linkDevice(dir, "block.db", path)
	}
	return nil
}

// releaseDB removes the partition of an OSD that is not in the cluster any more. A
// disk that is missing has no partition to remove.
func (n Node) releaseDB(ctx context.Context, in Intent, uuid string) error {
	for _, d := range in.Disks {
		if d.UUID != uuid || d.DB == nil {
			continue
		}
		t, known := in.table(d.DB.Table)
		if !known {
			return nil
		}
		if f, err := probeTable(ctx, t); err != nil || f.UUID != t.UUID {
			return err
		}
		_, _, p, ok, err := dbOf(ctx, in, d)
		if err != nil || !ok {
			return err
		}
		if err := n.present(ctx, t, p); err != nil {
			return err
		}
		if err := n.erase(p.path, d.Crypt != nil); err != nil {
			return err
		}
		return editTable(ctx, t.Path, "", "--delete", strconv.Itoa(p.number))
	}
	return nil
}
