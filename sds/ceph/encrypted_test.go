package ceph

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
	"github.com/basalt-gpu/basalt/sds/dmcrypt"
	"github.com/basalt-gpu/basalt/sds/dmcrypt/dmcrypttest"
)

// encryptedOSD is an OSD of the cluster that is added encrypted, with its database on
// another disk.
type encryptedOSD struct {
	t       *testing.T
	ctx     context.Context
	devices dmcrypttest.All
	uuid    string
	device  string
}

func (e *encryptedOSD) disk() *deploy.Disk {
	return &cluster.Intent.Disks[len(cluster.Intent.Disks)-1]
}

// round performs a round on a node with these devices, and returns what was done.
func (e *encryptedOSD) round(ctx context.Context, d deploy.Devices) (deploy.Round, error) {
	n := cluster.Node
	n.Crypt = d
	return n.Round(ctx, cluster.Intent, cluster.Keys, true)
}

// killed repeats rounds that are killed before each access to the devices in turn, each
// on what the previous one has left, until one reaches the end. Without the long layer
// none is killed.
func (e *encryptedOSD) killed(what string, end func(deploy.Round) bool) {
	e.t.Helper()
	first := 0
	if !layer.Long() {
		first = 1 << 20 // it is not killed
	}
	for left := first; ; left++ {
		for alive := true; alive; {
			ctx, kill := context.WithCancel(e.ctx)
			d := &dmcrypttest.Dying{All: e.devices, Kill: kill, Left: left}
			r, err := e.round(ctx, d)
			kill()
			if e.ctx.Err() != nil {
				e.t.Fatalf("%s: %v, %v", what, e.ctx.Err(), err)
			}
			alive = d.Left >= 0
			if alive && err != nil {
				e.t.Logf("%s: %v", what, err)
			}
			if alive && err == nil && end(r) {
				e.t.Logf("%s: killed before each of %d accesses", what, left-first)
				return
			}
			if f, seen := e.found(r); alive && seen && f.Content == deploy.Other {
				e.t.Errorf("%s, after a kill before access %d: the disk is not recognized: %+v", what, left, f)
			}
		}
	}
}

func (e *encryptedOSD) found(r deploy.Round) (deploy.Found, bool) {
	at := slices.IndexFunc(r.Seen.Disks, func(f deploy.Found) bool { return f.Path == e.device })
	if at < 0 {
		return deploy.Found{}, false
	}
	return r.Seen.Disks[at], true
}

// up reports whether the OSD is up.
func (e *encryptedOSD) up(r deploy.Round) bool {
	f, _ := e.found(r)
	return f.Running && r.Seen.Cluster != nil && slices.ContainsFunc(r.Seen.Cluster.OSDs, func(o deploy.OSDState) bool { return o.UUID == e.uuid && o.Up })
}

// until performs rounds until the end.
func (e *encryptedOSD) until(what string, end func(deploy.Round) bool) {
	e.t.Helper()
	until(e.ctx, e.t, what, func() (bool, error) {
		r, err := e.round(e.ctx, e.devices)
		return err == nil && end(r), err
	})
}

// reboot ends the OSD and its mappings.
func (e *encryptedOSD) reboot() {
	e.t.Helper()
	r, err := e.round(e.ctx, e.devices)
	if err != nil {
		e.t.Fatal(err)
	}
	f, _ := e.found(r)
	if err := cluster.KillOSD(e.ctx, f.ID); err != nil {
		e.t.Fatal(err)
	}
	for _, name := range []string{deploy.MappingPrefix + e.uuid, deploy.MappingPrefix + e.uuid + "-db"} {
		if err := e.devices.Close(e.ctx, name); err != nil {
			e.t.Fatal(err)
		}
	}
}

// mapped returns the mappings of the OSD that are open.
func (e *encryptedOSD) mapped() (open int) {
	for _, name := range []string{deploy.MappingPrefix + e.uuid, deploy.MappingPrefix + e.uuid + "-db"} {
		m, err := e.devices.Find(e.ctx, "", name)
		if err != nil {
			e.t.Fatal(err)
		}
		if m.Path != "" {
			open++
		}
	}
	return open
}

// TestEncryptedOSD adds an encrypted OSD, lets its node reboot, be without its key, and
// be installed anew, and releases it; in the long layer the node's process is killed at
// each access to the devices while the OSD is made, opened and released.
func TestEncryptedOSD(t *testing.T) {
	need(t)
	ctx := within(t)
	const table = "dddddddd-0000-4000-8000-000000000001"
	in := &cluster.Intent
	before := *in
	t.Cleanup(func() { *in = before })
	db := loop(t, 3<<30)
	in.Tables = []deploy.Table{{Node: cluster.Node.ID, Path: db, UUID: table}}
	disk, err := cluster.AddDisk("encrypted")
	if err != nil {
		t.Fatal(err)
	}
	e := &encryptedOSD{t: t, ctx: ctx, devices: dmcrypttest.Here(t), uuid: disk.UUID, device: loop(t, 4<<30)}
	e.disk().Path, e.disk().DB = e.device, &deploy.DB{Table: table, Bytes: 1 << 30}
	e.disk().Crypt = &deploy.Encryption{Key: deploy.NewSecret("0f2ad6b1c9e84c3f9d6ba1e2f3041526")}

	e.killed("make", e.up)
	head := make([]byte, 4096)
	if f, err := os.Open(e.device); err != nil {
		t.Error(err)
	} else if _, err := f.ReadAt(head, 0); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
	if h, ok := dmcrypt.Decode(head); !ok || h.UUID != e.uuid || h.Label != "basalt-osd" {
		t.Errorf("header of the disk = %+v, %v, want that of a complete OSD %s", h, ok, e.uuid)
	}
	for link, name := range map[string]string{"block": "", "block.db": "-db"} {
		m, err := e.devices.Find(ctx, "", deploy.MappingPrefix+e.uuid+name)
		at, linkErr := os.Readlink(filepath.Join(cluster.Node.Dir, "osd", e.uuid, link))
		if err := errors.Join(err, linkErr); err != nil || at != m.Path || at == "" {
			t.Errorf("%s of the OSD = %q, %v, want the mapping %q", link, at, err, m.Path)
		}
	}

	e.reboot()
	e.disk().Crypt.Lacks = "no ring"
	r, err := e.round(ctx, e.devices)
	refused := slices.ContainsFunc(r.Did, func(a deploy.Action) bool { return a.Do == deploy.Refuse && a.Name == e.uuid })
	if err != nil || !refused || e.mapped() != 0 {
		t.Errorf("round without the key = %v, %v, %d mappings, want the disk refused", r.Did, err, e.mapped())
	}
	e.disk().Crypt.Lacks = ""
	e.killed("boot", e.up)

	e.reboot()
	if err := os.RemoveAll(filepath.Join(cluster.Node.Dir, "osd", e.uuid)); err != nil {
		t.Fatal(err)
	}
	e.until("the node installed anew uses the disk again", e.up)

	e.disk().Leave, in.Tables[0].Leave = true, true
	// Moving the data takes many rounds, which are not killed.
	e.until("the OSD is purged", func(r deploy.Round) bool {
		return slices.ContainsFunc(r.Did, func(a deploy.Action) bool { return a.Do == deploy.PurgeOSD })
	})
	e.killed("release", func(r deploy.Round) bool {
		f, _ := e.found(r)
		return f.Content == deploy.Blank && !f.Made && len(r.Seen.Tables) == 1 && r.Seen.Tables[0].Content == deploy.Blank
	})
	if n := e.mapped(); n != 0 {
		t.Errorf("%d mappings are left of a released OSD, want none", n)
	}
	*in = before
	if err := cluster.WaitHealthy(ctx); err != nil {
		t.Errorf("wait for a healthy cluster: %v", err)
	}
	if raw, err := cluster.Ceph(ctx, "osd", "ls"); err != nil || len(raw) == 0 {
		t.Errorf("osd ls = %s, %v", raw, err)
	}
}
