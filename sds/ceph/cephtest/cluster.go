// Package cephtest runs a whole Ceph cluster for tests, with package deploy:
// one mon, one mgr and three OSDs on files of 4 GiB, on 127.0.0.1, in one
// directory. It lives at most as long as the process. Its disks are in memory
// if there is enough: acknowledged data must survive killed OSDs, but no power
// failure, and commands would otherwise spend their time waiting for some
// twenty commits on three disks.
package cephtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/memory"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Pool is the cluster's pool, with three copies.
const Pool = "basalt"

const diskBytes = 4 << 30

// Cluster is a running cluster.
type Cluster struct {
	Dir    string
	Node   deploy.Node
	Intent deploy.Intent
	Keys   deploy.Keys

	daemons *processes
	release func() // releases the monitor's port
}

// Missing returns a program that is not installed; empty if all are.
func Missing() string {
	for _, program := range []string{"ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "rbd", "rados", "ceph-bluestore-tool", "qemu-img"} {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// room is the space for a cluster, in bytes: it takes some 400 MB, and grows
// with the written data.
const room = 4 << 30

// askAgain is how long to wait between two queries of Ceph, whose command
// takes half a second of CPU time.
const askAgain = time.Second

// Start starts a cluster, with additional pools if any are given, and waits
// until all of it works. The caller must Close it, whether it started or not.
func Start(ctx context.Context, pools ...string) (*Cluster, error) {
	dir, err := memory.Folder("ceph", room)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, daemons: &processes{logs: dir, live: map[string]*process{}}}
	monitor, release, err := port.Take()
	if err != nil {
		return c, err
	}
	c.release = release
	local := netip.MustParseAddr("127.0.0.1")
	c.Node = deploy.Node{ID: "node-a", Dir: filepath.Join(dir, "a"), Address: local, Daemons: c.daemons}
	c.Intent = deploy.Intent{
		FSID: uuid(), FailureDomain: "osd", OSDMemoryBytes: 896 << 20,
		Mons: []deploy.Mon{{Node: "node-a", Address: netip.AddrPortFrom(local, monitor)}}, Mgrs: []string{"node-a"},
		Pools: []deploy.Pool{{Name: Pool, Replicas: 3, FailureDomain: "osd", PGs: 8}},
		Settings: map[string]string{
			// Peers detect the end of a process at once; one that only gets no CPU time
			// for a while must not be marked down.
			"osd_heartbeat_grace": "60", "osd_heartbeat_interval": "3", "mon_osd_min_down_reporters": "1",
			"bluestore_cache_autotune": "false", "bluestore_cache_size": "33554432",
			"mgr_initial_modules": "", "mon_data_avail_warn": "1", "mon_data_avail_crit": "1",
			// Each takes seconds to load, and none is needed here.
			"mgr_disabled_modules": "alerts,cephadm,dashboard,diskprediction_local,influx,insights,iostat,k8sevents,localpool,mds_autoscaler,mirroring,nfs,osd_perf_query,osd_support,prometheus,restful,rook,selftest,snap_schedule,stats,telegraf,test_orchestrator,zabbix",
			"osd_fast_shutdown":    "true", "osd_op_num_shards": "2", "mgr_stats_period": "1", "mgr_tick_period": "1",
			"osd_pool_default_pg_num": "1", "osd_pool_default_pgp_num": "1",
		},
	}
	for _, name := range pools {
		// Two copies: writing costs a third less.
		c.Intent.Pools = append(c.Intent.Pools, deploy.Pool{Name: name, Replicas: 2, FailureDomain: "osd", PGs: 4})
	}
	if c.Keys, err = deploy.NewKeys(rand.Reader, time.Now()); err != nil {
		return c, err
	}
	for i := range 3 {
		if _, err := c.AddDisk(fmt.Sprintf("disk%d", i)); err != nil {
			return c, err
		}
	}
	if err := c.Settle(ctx); err != nil {
		return c, err
	}
	return c, c.WaitHealthy(ctx)
}

// AddDisk creates a blank file, and adds it to the intent.
func (c *Cluster) AddDisk(name string) (deploy.Disk, error) {
	d := deploy.Disk{Node: c.Node.ID, Path: filepath.Join(c.Dir, name), UUID: uuid()}
	f, err := os.OpenFile(d.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return d, err
	}
	c.Intent.Disks = append(c.Intent.Disks, d)
	return d, errors.Join(f.Truncate(diskBytes), f.Close())
}

// Settle runs rounds until nothing is left to do.
func (c *Cluster) Settle(ctx context.Context) error {
	var last error
	for {
		r, err := c.Node.Round(ctx, c.Intent, c.Keys, true)
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), last)
		case err == nil && len(r.Did) == 0 && r.Seen.Cluster != nil:
			c.Intent.Exists = true
			return nil
		}
		last = err
		select { // there is no event to wait for
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-time.After(askAgain):
		}
	}
}

// WaitHealthy waits until Ceph reports no problem, or ctx ends.
func (c *Cluster) WaitHealthy(ctx context.Context) error {
	var h deploy.Health
	for {
		var err error
		if h, err = c.Node.Health(ctx); err == nil && h.Level == deploy.OK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %+v", ctx.Err(), h)
		case <-time.After(askAgain):
		}
	}
}

// Ceph runs a command as the cluster's administrator.
func (c *Cluster) Ceph(ctx context.Context, args ...string) ([]byte, error) {
	return command.Runner{Conf: c.Node.Conf()}.Run(ctx, nil, "ceph", args...)
}

// KillOSD kills an OSD, as a power failure would.
func (c *Cluster) KillOSD(ctx context.Context, id int) error {
	return c.daemons.signal(ctx, fmt.Sprintf("ceph-osd-%d", id), syscall.SIGKILL)
}

// Explain saves what explains a failed test: the status of the cluster, and
// its daemons' logs.
func (c *Cluster) Explain(f failed.Folder) {
	f.Files(filepath.Join(c.Dir, "*.log"))
	for _, ask := range []string{"status", "health detail", "osd tree", "osd df", "df", "pg dump_stuck", "osd pool ls detail", "log last 200"} {
		f.Output("ceph-"+strings.ReplaceAll(ask, " ", "-")+".txt",
			append([]string{"ceph", "--conf", c.Node.Conf(), "--connect-timeout", "20"}, strings.Fields(ask)...)...)
	}
}

// Close ends all daemons and removes everything.
func (c *Cluster) Close() error {
	if c == nil {
		return nil
	}
	c.daemons.end()
	if c.release != nil {
		c.release()
	}
	return os.RemoveAll(c.Dir)
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
