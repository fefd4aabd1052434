package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/supervisor"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph"
	"github.com/basalt-gpu/basalt/sds/ceph/cephtest"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
	"github.com/basalt-gpu/basalt/sds/dmcrypt"
	"github.com/basalt-gpu/basalt/sds/dmcrypt/dmcrypttest"
)

// quick has settings with which a cluster on one small machine is up soon; most of
// a manager's modules take seconds to load.
var quick = map[string]string{
	"osd_heartbeat_grace": "60", "osd_heartbeat_interval": "3", "mon_osd_min_down_reporters": "1",
	"bluestore_cache_autotune": "false", "bluestore_cache_size": "33554432", "osd_op_num_shards": "2",
	"mon_data_avail_warn": "1", "mon_data_avail_crit": "1", "mgr_stats_period": "1", "mgr_tick_period": "1", "osd_fast_shutdown": "true",
	"mgr_disabled_modules": "alerts,cephadm,dashboard,diskprediction_local,influx,insights,iostat,k8sevents,localpool,mds_autoscaler,mirroring,nfs,osd_perf_query,osd_support,prometheus,restful,rook,selftest,snap_schedule,stats,telegraf,test_orchestrator,zabbix",
}

// real is one node that leads, with an in-memory store and a real Ceph on loop
// devices.
type real struct {
	t      *testing.T
	ctx    context.Context
	store  *memstore.Store
	dir    string
	deploy deploy.Node
	node   *Node
	driver atomic.Pointer[ceph.Driver]
	log    *journal
}

// storageAddress is the node's address on the storage network, which all of Ceph uses.
const storageAddress = "127.0.0.2"

// journal is a log that two goroutines may write.
type journal struct {
	mu sync.Mutex
	bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.Buffer.Write(p)
}

func newReal(t *testing.T) *real {
	if missing := cephtest.Missing(); missing != "" {
		t.Skip("host: " + missing + " is not installed: installer/dev/setup.sh installs it")
	}
	if os.Getuid() != 0 {
		t.Skip("host: loop devices need root")
	}
	dir, err := os.MkdirTemp("/tmp", "basalt-stor-") // short, because it has sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	daemons, err := supervisor.NewProcesses(filepath.Join(dir, "run"), filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	local := netip.MustParseAddr("127.0.0.1")
	ctx, cancel := patience.Context(context.Background(), 18*time.Minute)
	r := &real{t: t, ctx: ctx, store: memstore.New(), dir: dir, log: &journal{}}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	r.deploy = deploy.Node{ID: "node-a", Dir: filepath.Join(dir, "ceph"), Address: local, Daemons: daemons, Crypt: dmcrypttest.Here(t)}
	keys := secrets.NewKeyStore(r.store)
	cache := watchcache.New(r.store, log, Kinds...)
	r.node = &Node{
		Cache: cache, Store: r.store, Self: "node-a", Name: "alpha", Address: local, Dir: r.deploy.Dir, Deploy: r.deploy, Settings: quick, Log: log, Probe: Probe, Pool: r.pool, Keys: keys, StorageAddress: func() netip.Addr { return netip.MustParseAddr(storageAddress) },
		ListDisks: func(ctx context.Context) ([]Block, error) { return Disks(ctx, "node-a", []string{dir + "/disk*"}) },
	}
	leader := &storage.Leader{Cache: cache, Store: r.store, Ceph: r.deploy, Node: r.node, Port: port.Free(t), Keys: keys, Log: log, StorageNetwork: func() bool { return true }}
	var wg sync.WaitGroup
	t.Cleanup(func() { // first of all, so that nothing is started again
		cancel()
		wg.Wait()
		if err := r.deploy.Remove(context.Background()); err != nil {
			t.Errorf("remove the cluster: %v", err)
		}
	})
	failed.Keep(t, func(f failed.Folder) {
		f.Text("storage.log", r.log.String())
		f.Files(filepath.Join(dir, "log", "*.log"))
		for _, ask := range []string{"status", "health detail", "osd tree", "osd df"} {
			f.Output("ceph-"+strings.ReplaceAll(ask, " ", "-")+".txt",
				append([]string{"ceph", "--conf", r.deploy.Conf(), "--connect-timeout", "20"}, strings.Fields(ask)...)...)
		}
	})
	for _, run := range []func(context.Context) error{r.node.Run, leader.Run, cache.Run} {
		wg.Go(func() {
			if err := run(ctx); ctx.Err() == nil {
				t.Errorf("Run ended before the test: %v", err)
			}
		})
	}
	return r
}

// encrypted checks that a disk, and no other, is encrypted with its OSD's header, and that
// its key is only in the store, sealed.
func (r *real) encrypted(name string) {
	r.t.Helper()
	for other, d := range r.disks() {
		if d.Status.Encrypted != (other == name) {
			r.t.Errorf("disk %s is reported as encrypted: %v, want %v", other, d.Status.Encrypted, other == name)
		}
	}
	h, ok := dmcrypt.Decode(r.head(name))
	o, err := r.store.Get(r.ctx, api.KindCephKeys, "cephkeys-cluster")
	if err != nil {
		r.t.Fatal(err)
	}
	ceph, err := api.Decode[storage.Ceph](o)
	at := slices.IndexFunc(ceph.Spec.OSDs, func(o storage.OSD) bool { return o.Key != "" })
	if err != nil || !ok || at < 0 || ceph.Spec.OSDs[at].UUID != h.UUID || !strings.HasPrefix(ceph.Spec.OSDs[at].Key, "basalt-seal:") {
		r.t.Errorf("header %+v, %v, OSDs %+v, error %v: want one sealed key, of the OSD in the header", h, ok, ceph.Spec.OSDs, err)
	}
}

func (r *real) pool(ctx context.Context, name string, a *Access) error {
	if name != api.PoolCeph {
		return nil
	}
	if a == nil {
		r.driver.Store(nil)
		return nil
	}
	d, err := ceph.Open(ctx, ceph.Options{FSID: a.FSID, Conf: r.deploy.Conf(), User: a.User, Pool: a.Pool, Monitors: a.Monitors,
		Node: "node-a", Staging: filepath.Join(r.dir, "staging"), Timeout: 3 * time.Minute})
	if err == nil {
		r.driver.Store(d)
	}
	return err
}

// disk creates a loop device over a sparse file.
func (r *real) disk(name string) (loop string) {
	path := filepath.Join(r.dir, name)
	f, err := os.Create(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(minDiskBytes), f.Close()); err != nil {
		r.t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", path).CombinedOutput()
	if err != nil {
		r.t.Skipf("host: no loop devices: %v: %s", err, out)
	}
	loop = strings.TrimSpace(string(out))
	r.t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", loop).CombinedOutput(); err != nil {
			r.t.Errorf("detach %s: %v: %s", loop, err, out)
		}
	})
	return loop
}

func (r *real) apply(c api.Command) {
	r.t.Helper()
	if _, err := r.store.Apply(r.ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{c}}); err != nil {
		r.t.Fatal(err)
	}
}

// until waits until ok returns true, and logs how long that took.
func (r *real) until(what string, ok func() bool) {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%+v", r.disks())
		}
	}()
	r.t.Logf("%5.1f s: %s", patience.Until(r.t, 6*time.Minute, what, ok).Seconds(), what)
}

func (r *real) disks() map[string]api.Disk {
	r.t.Helper()
	page, err := r.store.List(context.Background(), api.ListQuery{Kind: api.KindDisk, Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	all := map[string]api.Disk{}
	for _, o := range page.Items {
		d, err := api.Decode[api.Disk](o)
		if err != nil {
			r.t.Fatal(err)
		}
		if strings.HasPrefix(d.Status.Model, "file "+r.dir) { // skip the machine's own disks
			all[filepath.Base(d.Status.Model)] = d
		}
	}
	return all
}

func (r *real) use(name string, spec api.DiskSpec) {
	r.t.Helper()
	r.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindDisk, ID: r.disks()[name].Meta.ID, Name: r.disks()[name].Meta.Name, Expect: api.AnyRevision, Data: api.Encode(spec)})
}

// all reports whether all the disks are in the state.
func (r *real) all(state api.DiskState, names ...string) bool {
	all := r.disks()
	return !slices.ContainsFunc(names, func(n string) bool { d, ok := all[n]; return !ok || d.Status.State != state })
}

func (r *real) cluster() (c api.CephCluster) {
	r.t.Helper()
	o, err := r.store.Get(context.Background(), api.KindCephCluster, "ceph-1")
	if err != nil {
		r.t.Fatal(err)
	}
	if c, err = api.Decode[api.CephCluster](o); err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *real) enable(on bool) {
	r.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindCephCluster, ID: "ceph-1", Name: "ceph", Expect: api.AnyRevision,
		Data: api.Encode(api.CephClusterSpec{Enabled: on, Replicas: 2, FailureDomain: api.DomainOSD})})
}

func (r *real) encryptDisks() {
	r.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindCephCluster, ID: "ceph-1", Name: "ceph", Expect: api.AnyRevision,
		Data: api.Encode(api.CephClusterSpec{Enabled: true, EncryptDisks: true, Replicas: 2, FailureDomain: api.DomainOSD})})
}

// TestReal runs on this machine's disks, and in make test-long through the whole
// life of a cluster.
func TestReal(t *testing.T) {
	if testing.Short() {
		t.Skip("uses real disks and daemons")
	}
	t.Run("Disks", testLook)
	t.Run("Ceph", testCeph)
}

// testLook checks the disks of this machine; a loop device over a file that matches
// no pattern must not be one.
func testLook(t *testing.T) {
	if _, err := exec.LookPath("lsblk"); err != nil {
		t.Skip("host: lsblk is not installed")
	}
	all, err := Disks(t.Context(), "node-a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.ID == "" || b.SizeBytes <= 0 || strings.HasPrefix(b.Path, "/dev/loop") {
			t.Errorf("block = %+v, want an ID, a positive size, and not a loop device", b)
		}
		if b.Held == "" {
			if words, err := Probe(t.Context(), b.Path); err != nil {
				t.Errorf("Probe(%s) = %q, error %v", b.Path, words, err)
			}
		}
	}
}

// testCeph creates a cluster on the storage network, of three disks with a volume, one
// of which is encrypted, removes a disk from it, and removes the cluster.
func testCeph(t *testing.T) {
	layer.NeedLong(t, "TestLifeOfADisk, and TestReplaceDisk of sds/ceph")
	r := newReal(t)
	const a, b, c = "disk-a", "disk-b", "disk-c"
	r.disk(a)
	r.disk(b)
	full := r.disk(c)
	r.apply(api.Command{Op: api.OpReport, Kind: api.KindNode, ID: "node-a", Name: "alpha", Data: api.Encode(api.NodeStatus{StorageAddress: storageAddress})})
	r.until("the disks reported as free", func() bool { return r.all(api.DiskFree, a, b, c) })
	if out, err := exec.Command("mkfs.ext4", "-q", full).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	for _, name := range []string{a, b, c} {
		r.use(name, api.DiskSpec{Use: api.DiskCeph})
	}
	r.until("a disk that is not empty is not used", func() bool {
		d := r.disks()[c]
		return d.Status.State == api.DiskInUse && strings.Contains(d.Status.Reason, "ext4")
	})
	if entries, err := os.ReadDir(r.dir); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "ceph" }) {
		t.Fatalf("files before Ceph was enabled: %v, error %v; want no directory ceph", entries, err)
	}

	r.enable(true)
	r.apply(api.Command{Op: api.OpAssign, Kind: api.KindCephCluster, ID: "ceph-1", Expect: api.AnyRevision,
		Data: api.Encode(api.CephClusterAssignment{Fsid: uuid.NewString(), Mons: []api.NodeID{"node-a"}, Mgrs: []api.NodeID{"node-a"}})})
	r.until("two disks ready in Ceph", func() bool { return r.all(api.DiskReady, a, b) })
	if d := r.disks()[c]; d.Status.State != api.DiskInUse {
		t.Fatalf("status of the disk that is not empty = %+v, want %s", d.Status, api.DiskInUse)
	}
	r.encryptDisks()
	r.use(c, api.DiskSpec{Use: api.DiskCeph, Wipe: true})
	r.until("the third disk wiped, encrypted and ready in Ceph", func() bool { return r.all(api.DiskReady, c) })
	r.encrypted(c)
	r.until("the cluster ready, with its health and size", func() bool {
		st := r.cluster().Status
		return st.Phase == api.CephReady && (st.Health == api.CephOK || st.Health == api.CephWarning) && st.Summary != "" && st.OsdsUp == 3 && st.SizeBytes > 0
	})
	t.Logf("%s: %s; %s", r.cluster().Status.Health, r.cluster().Status.Summary, r.cluster().Status.Next)
	for _, ask := range []string{"mon", "osd"} {
		out, err := exec.CommandContext(r.ctx, "ceph", "--conf", r.deploy.Conf(), "--connect-timeout", "60", ask, "dump").Output()
		if err != nil || !bytes.Contains(out, []byte(storageAddress+":")) || bytes.Contains(out, []byte("127.0.0.1:")) {
			t.Errorf("addresses in Ceph, error %v; want only %s:\n%s", err, storageAddress, out)
		}
	}
	r.until("the pool opened", func() bool { return r.driver.Load() != nil })
	d := r.driver.Load()
	v, err := d.CreateVolume(r.ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 64 << 20})
	if err != nil || v.Source.RBD == nil {
		t.Fatalf("CreateVolume = %+v, error %v; want an RBD source", v, err)
	}
	if key, err := r.node.Key(deploy.Client); err != nil || len(key) != 28 {
		t.Errorf("client key has %d bytes, error %v; want 28 bytes", len(key), err)
	}
	image := filepath.Join(r.dir, "image")
	content := bytes.Repeat([]byte("basalt! "), 8<<20/8)
	if err := os.WriteFile(image, content, 0o600); err != nil {
		t.Fatal(err)
	}
	rbd := fmt.Sprintf("rbd:%s/%s:id=%s:conf=%s", v.Source.RBD.Pool, v.Source.RBD.Image, v.Source.RBD.User, r.deploy.Conf())
	r.qemu("convert", "-n", "-f", "raw", "-O", "raw", image, rbd)

	r.use(a, api.DiskSpec{})
	r.until("a disk drained and free", func() bool { return r.all(api.DiskFree, a) })
	if head := r.head(c); len(bytes.Trim(head, "\x00")) == 0 {
		t.Error("the encrypted disk is blank")
	}
	if head := r.head(a); len(bytes.Trim(head, "\x00")) > 0 {
		t.Errorf("start of the released disk = %.40q, want zeros", head)
	}
	back := filepath.Join(r.dir, "back")
	r.qemu("convert", "-f", "raw", "-O", "raw", rbd, back)
	if have, err := os.ReadFile(back); err != nil || !bytes.HasPrefix(have, content) {
		t.Errorf("volume read back: %d bytes, error %v; want the written content", len(have), err)
	}

	r.use(b, api.DiskSpec{})
	r.use(c, api.DiskSpec{})
	r.enable(false)
	r.until("a cluster with a volume is not removed", func() bool { return strings.Contains(r.cluster().Status.Summary, "contains 1 volumes") })
	if err := d.DeleteVolume(r.ctx, "vol-1"); err != nil {
		t.Fatal(err)
	}
	r.until("all disks free", func() bool { return r.all(api.DiskFree, a, b, c) })
	if head := r.head(c); len(bytes.Trim(head, "\x00")) > 0 {
		t.Errorf("start of the released encrypted disk = %.40q, want zeros", head)
	}
	r.until("the cluster reported as not enabled", func() bool {
		st := r.cluster().Status
		return st.Phase == api.CephPending && st.Summary == "not enabled"
	})
	r.until("the cluster's directory on the node removed", func() bool { _, err := os.Stat(r.deploy.Dir); return errors.Is(err, os.ErrNotExist) })
	if r.driver.Load() != nil {
		t.Error("the pool's driver is still set after the cluster was removed, want nil")
	}
	if out, _ := exec.Command("pgrep", "--full", r.dir).Output(); len(out) > 0 {
		t.Errorf("processes left: %s, want none", out)
	}
}

func (r *real) qemu(args ...string) {
	r.t.Helper()
	if out, err := exec.CommandContext(r.ctx, "qemu-img", args...).CombinedOutput(); err != nil {
		r.t.Fatalf("qemu-img %q: %v: %s", args, err, out)
	}
}

func (r *real) head(name string) []byte {
	f, err := os.Open(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	if _, err := f.Read(b); err != nil {
		r.t.Fatal(err)
	}
	return b
}
