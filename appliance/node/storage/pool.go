package storage

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/xfsdisk"
)

// Pools runs disks of this node as storage pools of its own (pool_next.go decides):
//
//	DIR/NAME             mount point of the file system of pool NAME
//	DIR/.disks/ID.json   the record of a disk (poolRecord)
type Pools struct {
	Dir  string
	Self api.NodeID
	// Open opens the driver over a directory; the driver calls present before each
	// operation.
	Open func(dir string, present func() error) (sds.Driver, error)
	// Set is called with the driver of a pool that can be used, and with nil when
	// it cannot be used any more.
	Set     func(name string, d sds.Driver)
	Systemd bool // systemd is the first process, and performs mounts
	Log     *slog.Logger

	mu     sync.Mutex           // guards the following fields, which only round changes
	disks  map[string]*poolDisk // by disk ID
	looked bool
}

// poolDisk is a disk that is, was or is to be a pool.
type poolDisk struct {
	name     string // name of the disk
	pool     string
	record   *poolRecord
	driver   sds.Driver // nil if it is not open
	checking chan error // result of a check in progress; nil if none
	decision poolDecision
}

// poolInput is the input of a round.
type poolInput struct {
	disks   map[string]api.Disk // the disks' objects
	blocks  map[string]Block    // disks found on this node
	volumes map[string]int      // number of volumes assigned to this node's pools, by pool
}

// maxPoolSteps is more than the number of steps that any disk needs in a round.
const maxPoolSteps = 12

// round performs steps until nothing is left to do, and returns the decision for
// each disk that is, was or is to be a pool.
func (p *Pools) round(ctx context.Context, in poolInput) (map[string]poolDecision, error) {
	if err := p.load(in); err != nil {
		return nil, err
	}
	decisions := map[string]poolDecision{}
	for _, id := range slices.Sorted(maps.Keys(p.disks)) {
		var failed error
		for range maxPoolSteps {
			v, err := p.view(ctx, id, in)
			if err != nil {
				return nil, err
			}
			v.failed = failed
			d := nextPool(v)
			decisions[id] = d
			p.mu.Lock()
			p.disks[id].decision = d
			p.mu.Unlock()
			if d.step == poolNone || ctx.Err() != nil {
				break
			}
			if failed = p.perform(ctx, id, v, d.step); failed != nil {
				p.Log.Warn("storage: "+string(d.step)+" disk of pool failed", "disk", p.disks[id].name, "pool", p.disks[id].pool, "error", failed)
			} else {
				p.Log.Info("storage: "+string(d.step)+" disk of pool", "disk", p.disks[id].name, "pool", p.disks[id].pool)
			}
		}
		if v := decisions[id]; v.step == poolNone && v.state == api.DiskFree { // it is not a pool any more
			delete(decisions, id)
			p.mu.Lock()
			delete(p.disks, id)
			p.mu.Unlock()
		}
	}
	return decisions, nil
}

// load adds the disks that have a record, and those that are to be pools.
func (p *Pools) load(in poolInput) error {
	records, err := p.records()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.disks == nil {
		p.disks = map[string]*poolDisk{}
	}
	p.looked = true
	for id, r := range records {
		d := p.disk(id)
		d.record, d.pool = &r, r.Pool
	}
	for id, o := range in.disks {
		_, here := in.blocks[id]
		if o.Spec.Use == api.DiskLocal && (here || o.Status.Node == p.Self) {
			if d := p.disk(id); d.record == nil {
				d.pool = o.Spec.Pool
			}
		}
		if d := p.disks[id]; d != nil {
			d.name = o.Meta.Name
		}
	}
	return nil
}

func (p *Pools) disk(id string) *poolDisk {
	if p.disks[id] == nil {
		p.disks[id] = &poolDisk{name: id}
	}
	return p.disks[id]
}

// view observes a disk.
func (p *Pools) view(ctx context.Context, id string, in poolInput) (poolView, error) {
	d := p.disks[id]
	v := poolView{spec: in.disks[id].Spec, record: d.record, open: d.driver != nil, volumes: in.volumes[d.pool]}
	if b, ok := in.blocks[id]; ok {
		v.block = &b
	}
	for other, o := range p.disks {
		if other != id && o.pool == d.pool && (o.record != nil && d.record == nil || (o.record == nil) == (d.record == nil) && other < id) {
			v.taken = o.name
		}
	}
	dir := p.dir(d.pool)
	dev, err := xfsdisk.Device(dir)
	if err != nil {
		return v, fmt.Errorf("find what is mounted for storage pool %s: %w", d.pool, err)
	}
	v.mounted = dev != 0
	switch {
	case v.block == nil:
	case v.mounted && !xfsdisk.IsDevice(v.block.Path, dev):
		v.dead = errors.New("the disk was unplugged, and is back under another name")
	case v.mounted:
		v.dead = p.alive(ctx, d, dir)
	default:
		if v.content, err = xfsdisk.Probe(ctx, v.block.Path, fileSystem(p.Self, id, d.pool)); err != nil {
			return v, fmt.Errorf("probe disk %s: %w", v.block.Path, err)
		}
	}
	if v.block != nil && v.mounted {
		v.content = xfsdisk.Found{Content: xfsdisk.Whole}
	}
	if d.driver != nil && v.dead == nil && v.spec.Use != api.DiskLocal { // volumes unknown to the cluster count, too
		all, err := d.driver.Volumes(ctx)
		if err != nil {
			v.dead = err
		}
		v.volumes = max(v.volumes, len(all))
	}
	return v, nil
}

// checkTime is how long a disk may take to answer.
const checkTime = 10 * time.Second

// alive returns why the mounted file system cannot be read, or nil. A read of a
// disk that does not answer hangs, so there is only one at a time.
func (p *Pools) alive(ctx context.Context, d *poolDisk, dir string) error {
	if d.checking == nil {
		c := make(chan error, 1)
		go func() {
			_, err := xfsdisk.ReadMark(dir)
			if errors.Is(err, fs.ErrNotExist) { // not marked yet
				err = nil
			}
			c <- err
		}()
		d.checking = c
	}
	late := time.NewTimer(checkTime)
	defer late.Stop()
	select {
	case err := <-d.checking:
		d.checking = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return fmt.Errorf("the disk has not responded for %v", checkTime)
	}
}

// perform performs a step.
func (p *Pools) perform(ctx context.Context, id string, v poolView, step poolStep) error {
	d := p.disks[id]
	dir, uuid := p.dir(d.pool), fileSystem(p.Self, id, d.pool)
	switch step {
	case poolMake:
		if err := p.write(id, poolRecord{Version: 1, Pool: d.pool}); err != nil {
			return err
		}
		if err := xfsdisk.Make(ctx, v.block.Path, uuid); err != nil {
			return fmt.Errorf("create a file system on %s: %w", v.block.Path, err)
		}
		return nil
	case poolMount:
		if err := xfsdisk.Mount(ctx, v.block.path(), dir, p.Systemd); err != nil {
			return fmt.Errorf("mount %s: %w", v.block.path(), err)
		}
		return nil
	case poolOpen:
		return p.open(id, dir)
	case poolClose:
		return p.close(id)
	case poolUnmount:
		if err := xfsdisk.Unmount(dir); err != nil {
			return fmt.Errorf("close storage pool %s: %w", d.pool, err)
		}
		return nil
	case poolErase:
		if err := xfsdisk.Erase(v.block.Path); err != nil {
			return fmt.Errorf("erase %s: %w", v.block.Path, err)
		}
		return nil
	case poolForget:
		if err := os.Remove(p.recordPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		p.mu.Lock()
		d.record = nil
		p.mu.Unlock()
		_ = os.Remove(dir) // a mount point that is left does no harm
		return nil
	}
	return fmt.Errorf("unknown step %q", step)
}

// open marks the file system, records that it is complete, and opens the driver.
func (p *Pools) open(id, dir string) error {
	d := p.disks[id]
	mark := xfsdisk.Mark{Version: 1, Node: p.Self, Disk: api.DiskID(id), Pool: d.pool}
	if err := xfsdisk.Check(dir, mark); err != nil {
		return fmt.Errorf("check the mark of storage pool %s: %w", d.pool, err)
	}
	if d.record == nil || !d.record.Made {
		if err := p.write(id, poolRecord{Version: 1, Pool: d.pool, Made: true}); err != nil {
			return err
		}
	}
	driver, err := p.Open(dir, func() error { return present(dir, mark) })
	if err != nil {
		return err
	}
	p.mu.Lock()
	d.driver = driver
	p.mu.Unlock()
	p.Set(d.pool, driver)
	return nil
}

// present returns why the pool's file system is not mounted in its directory, or
// nil.
func present(dir string, want xfsdisk.Mark) error {
	switch have, err := xfsdisk.ReadMark(dir); {
	case err != nil:
		return errors.Join(api.Errorf(api.CodeUnavailable, "the disk of storage pool %s is not available", want.Pool).WithHint("check the disk: basalt disk list"), err)
	case have != want:
		return api.Errorf(api.CodeUnavailable, "another file system is mounted in the directory of storage pool %s", want.Pool)
	}
	return nil
}

func (p *Pools) close(id string) error {
	d := p.disks[id]
	p.Set(d.pool, nil)
	p.mu.Lock()
	driver := d.driver
	d.driver = nil
	p.mu.Unlock()
	if err := driver.Close(); err != nil { // the file system may have failed
		p.Log.Warn("storage: close pool failed", "pool", d.pool, "error", err)
	}
	return nil
}

func (p *Pools) dir(pool string) string { return filepath.Join(p.Dir, pool) }

func (p *Pools) recordPath(id string) string { return filepath.Join(p.Dir, ".disks", id+".json") }

func (p *Pools) write(id string, r poolRecord) error {
	if err := os.MkdirAll(filepath.Join(p.Dir, ".disks"), 0o700); err != nil {
		return err
	}
	if err := os.Chmod(p.Dir, 0o711); err != nil { // QEMU runs as another user and must reach the disks
		return err
	}
	if err := atomicfile.WriteFile(p.recordPath(id), api.Encode(r), 0o600); err != nil {
		return err
	}
	p.mu.Lock()
	p.disks[id].record = &r
	p.mu.Unlock()
	return nil
}

// records returns the records of all disks that this node has made pools, by disk
// ID.
func (p *Pools) records() (map[string]poolRecord, error) {
	entries, err := os.ReadDir(filepath.Join(p.Dir, ".disks"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	all := map[string]poolRecord{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		raw, err := os.ReadFile(p.recordPath(id))
		if err != nil {
			return nil, err
		}
		var r poolRecord
		if err := json.Unmarshal(raw, &r); err != nil || r.Version != 1 || api.ValidateName(r.Pool) != nil {
			return nil, fmt.Errorf("%s: not a valid record of a storage pool: %.200q", p.recordPath(id), raw)
		}
		all[id] = r
	}
	return all, err
}

// fileSystem returns the UUID of a disk's file system, which is derived from node,
// disk and pool.
func fileSystem(node api.NodeID, disk, pool string) xfsdisk.UUID {
	h := sha256.Sum256([]byte("basalt pool\x00" + string(node) + "\x00" + disk + "\x00" + pool))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8 and variant of RFC 9562
	return xfsdisk.UUID(h[:16])
}

// DiskPool returns the disk of a pool, and whether it is being released.
func (p *Pools) DiskPool(name string) (disk api.DiskID, draining bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, d := range p.disks {
		if d.pool == name && d.driver != nil {
			return api.DiskID(id), d.decision.state == api.DiskDraining
		}
	}
	return "", false
}

// Released reports whether a pool is certainly not on a disk of this node any more:
// it was released, and nothing is left of it that could be accessed.
func (p *Pools) Released(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.disks {
		if d.pool == name {
			return false
		}
	}
	return p.looked
}

// PoolsWork returns what is wrong with pools that this node should have, or nil.
func (p *Pools) PoolsWork() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var wrong []string
	for _, id := range slices.Sorted(maps.Keys(p.disks)) {
		if d := p.disks[id]; d.decision.state == api.DiskFailed {
			wrong = append(wrong, "storage pool "+d.pool+" (disk "+d.name+"): "+d.decision.reason)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return api.Errorf(api.CodeUnavailable, "%s", strings.Join(wrong, "; "))
}
