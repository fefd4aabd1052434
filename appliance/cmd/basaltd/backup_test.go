package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup/backuptest"
	"github.com/basalt-gpu/basalt/sds/local"
)

const (
	mib        = 1 << 20
	diskBytes  = 48 * mib
	password   = "a password that nobody may see"
	secretKey  = "a-key-that-nobody-may-see"
	childEnv   = "BASALT_TEST_BACKUP_CHILD"
	longEnough = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if where := os.Getenv(upgradeVar); where != "" {
		os.Exit(upgradeProgram(where, os.Args[1:]))
	}
	if spec := os.Getenv(childEnv); spec != "" {
		child(spec)
		return
	}
	os.Exit(m.Run())
}

// archive is an agent with a real pool and real restic; the hypervisor is a fake.
type archive struct {
	store *memstore.Store
	pool  *local.Store
	kept  backups
	log   *logBuffer
	stop  func()
}

// logBuffer is a log whose content tests check.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *logBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// openArchive opens an archive in dir. stall is how long a target may make no progress. before
// runs before the agent starts and writes what the store must contain by then, because an agent
// removes what its store does not contain.
func openArchive(dir string, store *memstore.Store, stall time.Duration, before ...func(*archive) error) (*archive, error) {
	a := &archive{store: store, log: &logBuffer{}}
	var err error
	if a.pool, err = local.Open(local.Options{Dir: filepath.Join(dir, "pool")}); err != nil {
		return nil, err
	}
	if a.kept, err = openBackups(config{run: filepath.Join(dir, "run"), data: dir}, secrets.NewKeyStore(a.store)); err != nil {
		return nil, err
	}
	a.kept.tool.Stall = stall
	for _, f := range before {
		if err := f(a); err != nil {
			return nil, err
		}
	}
	cache := watchcache.New(a.store, slog.New(slog.DiscardHandler), agent.Kinds...)
	o := agent.Options{NodeID: "node-1", NodeName: "n1", DataDir: dir, RunDir: filepath.Join(dir, "i"), Changes: cache, Store: a.store,
		Machines: hypfake.New(hypfake.Guest{}), Pools: map[string]sds.Driver{api.PoolLocal: a.pool}, Accelerator: hypervisor.TCG,
		Backups: a.kept, ReportEvery: time.Second, Log: slog.New(slog.NewTextHandler(a.log, nil))}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	ag := agent.New(o)
	go func() { _ = ag.Run(ctx); close(done) }()
	followed := make(chan struct{})
	go func() { _ = cache.Run(ctx); close(followed) }()
	a.stop = sync.OnceFunc(func() { cancel(); <-done; <-followed; _ = a.pool.Close() })
	return a, nil
}

func needs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs restic and QEMU's storage daemon")
	}
	for _, tool := range []string{"restic", "qemu-img", "qemu-io", "qemu-storage-daemon"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %s is not installed: installer/dev/setup.sh installs it", tool)
		}
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil || os.Getuid() != 0 {
		t.Skipf("host: no FUSE for this user: %v", err)
	} else {
		_ = f.Close()
	}
}

// newArchive opens an archive in dir. At the end of the test it checks that no mount is left
// and that the log contains no secret.
func newArchive(t *testing.T, dir string, store *memstore.Store, stall time.Duration, before ...func(*archive) error) *archive {
	t.Helper()
	needs(t)
	a, err := openArchive(dir, store, stall, before...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.stop()
		if left, err := os.ReadDir(filepath.Join(dir, "run", "backup")); err != nil || len(left) > 0 {
			t.Errorf("files left in the run folder = %v, error %v, want none", left, err)
		}
		if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), dir) {
			t.Errorf("mounts below %s are left (error %v), want none", dir, err)
		}
		if log := a.log.String(); strings.Contains(log, password) || strings.Contains(log, secretKey) {
			t.Error("log contains a secret, want none")
		} else if t.Failed() {
			t.Log(log)
		}
	})
	return a
}

func (a *archive) apply(cmds ...api.Command) error {
	_, err := a.store.Apply(context.Background(), api.Batch{At: time.Now().UTC(), Commands: cmds})
	return err
}

// put writes an object as the API does, and assigns it to the node.
func (a *archive) put(kind api.Kind, id string, spec, assignment any) error {
	cmds := []api.Command{{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Data: api.Encode(spec)}}
	if assignment != nil {
		cmds[0].Finalizers = []string{api.FinalizerAgent}
		cmds = append(cmds, api.Command{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(assignment)})
	}
	return a.apply(cmds...)
}

// target writes a target with its secrets sealed, as the API server does.
func (a *archive) target(id string, s api.BackupTargetSpec) error {
	var err error
	if s.Password, err = a.kept.secrets.Seal(context.Background(), s.Password); err != nil {
		return err
	}
	if s.S3 != nil {
		c := *s.S3
		s.S3 = &c
		if c.SecretKey, err = a.kept.secrets.Seal(context.Background(), c.SecretKey); err != nil {
			return err
		}
	}
	return a.put(api.KindBackupTarget, id, s, nil)
}

func (a *archive) volume(id string, s api.VolumeSpec) error {
	s.SizeBytes = diskBytes
	return a.put(api.KindVolume, id, s, api.VolumeAssignment{Node: "node-1", Pool: api.PoolLocal, Epoch: 1})
}

func (a *archive) backup(id, volume, target string) error {
	return a.put(api.KindBackup, id, api.BackupSpec{Volume: api.VolumeID(volume), Target: api.BackupTargetID(target), SizeBytes: diskBytes}, api.BackupAssignment{Node: "node-1"})
}

func read[T any](a *archive, kind api.Kind, id string) (x T, there bool) {
	o, err := a.store.Get(context.Background(), kind, id)
	if err != nil {
		return x, false
	}
	x, err = api.Decode[T](o)
	return x, err == nil
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	patience.Until(t, longEnough, what, f)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (a *archive) ready(t *testing.T, volume string) {
	t.Helper()
	until(t, volume+" is ready", func() bool {
		v, _ := read[api.Volume](a, api.KindVolume, volume)
		return v.Status.Phase == api.VolumeReady
	})
}

// ends waits until the backup has ended, and returns its status.
func (a *archive) ends(t *testing.T, id string) api.BackupStatus {
	t.Helper()
	var b api.Backup
	until(t, id+" ends", func() bool { b, _ = read[api.Backup](a, api.KindBackup, id); return b.Status.Phase.Ended() })
	return b.Status
}

func (a *archive) path(t *testing.T, volume string) string {
	t.Helper()
	v, err := a.pool.Volume(t.Context(), api.VolumeID(volume))
	must(t, err)
	return v.Source.Path
}

// unread fails the test if a snapshot is left that a backup was read from.
func (a *archive) unread(t *testing.T, volume string) {
	t.Helper()
	if snaps, err := a.pool.Snapshots(t.Context(), api.VolumeID(volume)); err != nil || len(snaps) > 0 {
		t.Errorf("snapshots of %s after the backup = %v, error %v, want none", volume, snaps, err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// random48 writes a raw disk image with random content.
func random48(t *testing.T) string {
	t.Helper()
	data := make([]byte, 40*mib)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	path := filepath.Join(t.TempDir(), "first.raw")
	must(t, os.WriteFile(path, data, 0o600))
	must(t, os.Truncate(path, diskBytes))
	return path
}

// fill copies a raw image to the volume, which must not be open.
func (a *archive) fill(t *testing.T, volume, raw string) {
	t.Helper()
	run(t, "qemu-img", "convert", "-n", "-f", "raw", "-O", "qcow2", raw, a.path(t, volume))
}

func (a *archive) same(t *testing.T, volume, format, other string) {
	t.Helper()
	run(t, "qemu-img", "compare", "-f", format, "-F", "qcow2", other, a.path(t, volume))
}

func TestBackupToADirectory(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	backuptest.Directory(t, to, password)
	a := newArchive(t, dir, memstore.New(), longEnough)
	must(t, a.target("bt-1", api.BackupTargetSpec{Directory: to, Password: password}))
	until(t, "the target is ready", func() bool {
		x, _ := read[api.BackupTarget](a, api.KindBackupTarget, "bt-1")
		return x.Status.Phase == api.TargetReady
	})
	must(t, a.volume("vol-1", api.VolumeSpec{}))
	a.ready(t, "vol-1")
	first := random48(t)
	a.fill(t, "vol-1", first)
	must(t, a.backup("bak-1", "vol-1", "bt-1"))
	one := a.ends(t, "bak-1")
	if one.Phase != api.BackupSucceeded || one.TotalBytes != diskBytes || one.ProgressBytes != diskBytes || one.AddedBytes < 40*mib ||
		one.StartedAt == nil || one.EndedAt == nil || one.EndedAt.Before(*one.StartedAt) || one.EndedAt.Location() != time.UTC {
		t.Fatalf("status of the first backup = %+v, want Succeeded with all bytes and times in UTC", one)
	}
	a.unread(t, "vol-1")
	run(t, "qemu-io", "-f", "qcow2", "-c", fmt.Sprintf("write -P 0x5a %d 64k", 5*mib), a.path(t, "vol-1"))
	must(t, a.backup("bak-2", "vol-1", "bt-1"))
	if two := a.ends(t, "bak-2"); two.Phase != api.BackupSucceeded || two.AddedBytes < 64<<10 || two.AddedBytes > one.AddedBytes/2 {
		t.Errorf("status of the incremental backup = %+v, want Succeeded with at least 64 KiB and less than half of the first's %d bytes added", two, one.AddedBytes)
	}
	must(t, a.volume("vol-2", api.VolumeSpec{Backup: "bak-1"}))
	must(t, a.volume("vol-3", api.VolumeSpec{Backup: "bak-2"}))
	a.ready(t, "vol-2")
	a.ready(t, "vol-3")
	a.same(t, "vol-2", "raw", first)
	a.same(t, "vol-3", "qcow2", a.path(t, "vol-1"))

	// With a wrong password the target reports it, and backups to it are pending.
	must(t, a.target("bt-2", api.BackupTargetSpec{Directory: to, Password: "not " + password}))
	must(t, a.backup("bak-3", "vol-1", "bt-2"))
	until(t, "target and backup report the wrong password", func() bool {
		x, _ := read[api.BackupTarget](a, api.KindBackupTarget, "bt-2")
		b, _ := read[api.Backup](a, api.KindBackup, "bak-3")
		return x.Status.Phase == api.TargetFailed && strings.Contains(x.Status.LastError, "password") &&
			b.Status.Phase == api.BackupPending && strings.Contains(b.Status.LastError, "password")
	})

	// Each is deleted alone, and one that never began is deleted at once.
	for _, id := range []string{"bak-1", "bak-3"} {
		must(t, a.apply(api.Command{Op: api.OpDelete, Kind: api.KindBackup, ID: id, Expect: api.AnyRevision}))
		until(t, id+" is deleted", func() bool { _, there := read[api.Backup](a, api.KindBackup, id); return !there })
	}
	bt, _ := read[api.BackupTarget](a, api.KindBackupTarget, "bt-1")
	real, err := a.kept.target(t.Context(), bt)
	must(t, err)
	if _, err := a.kept.tool.Size(t.Context(), real, "bak-1"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("Size of the deleted backup: error %v, want NotFound", err)
	}
	if n, err := a.kept.tool.Size(t.Context(), real, "bak-2"); err != nil || n != diskBytes {
		t.Errorf("Size of the other backup = %d, error %v, want %d", n, err, int64(diskBytes))
	}
	if locks, err := os.ReadDir(filepath.Join(to, "locks")); err != nil || len(locks) > 0 {
		t.Errorf("locks in the target = %v, error %v, want none", locks, err)
	}
}

// bucket is an S3 store that calls a function when the first data arrives, and can become
// unavailable.
type bucket struct {
	srv     *httptest.Server
	back    *s3mem.Backend
	mu      sync.Mutex
	atData  func() // called once, when the first data arrives
	refuses bool
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{back: s3mem.New()}
	must(t, b.back.CreateBucket("backups"))
	store := gofakes3.New(b.back).Server()
	b.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		var onData func()
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/data/") {
			onData, b.atData = b.atData, nil
		}
		b.mu.Unlock()
		if onData != nil {
			onData()
		}
		b.mu.Lock()
		away := b.refuses
		b.mu.Unlock()
		if away {
			panic(http.ErrAbortHandler)
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(b.srv.Close)
	backuptest.Bucket(t, b.srv.URL+"/backups", password)
	return b
}

func (b *bucket) setAway(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = is
}

// used reports whether a restic uses the bucket.
func (b *bucket) used(t *testing.T) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	return slices.ContainsFunc(all, func(path string) bool {
		env, _ := os.ReadFile(path) // the process may have ended
		return bytes.Contains(env, []byte("RESTIC_REPOSITORY=s3:"+b.srv.URL))
	})
}

func (b *bucket) at(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.atData = f
}

func (b *bucket) spec() api.BackupTargetSpec {
	return api.BackupTargetSpec{Password: password, S3: &api.S3Target{Endpoint: b.srv.URL, Bucket: "backups", Region: "us-east-1", AccessKey: "key", SecretKey: secretKey}}
}

// holds returns the names in a folder of the bucket.
func (b *bucket) holds(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := b.back.ListBucket("backups", &gofakes3.Prefix{Prefix: folder + "/", HasPrefix: true}, gofakes3.ListBucketPage{})
	must(t, err)
	for _, c := range list.Contents {
		names = append(names, c.Key)
	}
	return names
}

// TestBackupTargetGone: the target becomes unavailable during a backup. The backup fails with a
// reason, and nothing of it is left on the node, nor in the target once the next backup is
// made.
func TestBackupTargetGone(t *testing.T) {
	needs(t)
	b, dir, store := newBucket(t), t.TempDir(), memstore.New()
	a := newArchive(t, dir, store, 15*time.Second)
	must(t, a.target("bt-1", b.spec()))
	must(t, a.volume("vol-1", api.VolumeSpec{}))
	a.ready(t, "vol-1")
	first := random48(t)
	a.fill(t, "vol-1", first)
	b.at(func() { b.setAway(true) })
	must(t, a.backup("bak-1", "vol-1", "bt-1"))
	if st := a.ends(t, "bak-1"); st.Phase != api.BackupFailed || !strings.Contains(st.LastError, "the backup target is not available") {
		t.Errorf("status of a backup whose target became unavailable = %+v, want Failed with that reason", st)
	}
	a.unread(t, "vol-1")
	a.stop()
	b.at(nil) // not called if a busy machine failed the backup before the first data
	b.setAway(false)
	a = newArchive(t, dir, store, longEnough) // with enough time for a busy machine
	must(t, a.backup("bak-2", "vol-1", "bt-1"))
	if st := a.ends(t, "bak-2"); st.Phase != api.BackupSucceeded {
		t.Fatalf("status of the next backup = %+v, want Succeeded", st)
	}
	if locks, snaps := b.holds(t, "locks"), b.holds(t, "snapshots"); len(locks) != 0 || len(snaps) != 1 {
		t.Errorf("after the next backup: locks %v, snapshots %v, want none and one", locks, snaps)
	}
	// A backup that is deleted while it is copied is canceled, and leaves nothing.
	run(t, "qemu-io", "-f", "qcow2", "-c", fmt.Sprintf("write -P 0x5a %d 64k", 5*mib), a.path(t, "vol-1"))
	b.at(func() {
		_ = a.apply(api.Command{Op: api.OpDelete, Kind: api.KindBackup, ID: "bak-3", Expect: api.AnyRevision})
	})
	must(t, a.backup("bak-3", "vol-1", "bt-1"))
	until(t, "the backup is deleted", func() bool { _, there := read[api.Backup](a, api.KindBackup, "bak-3"); return !there })
	a.unread(t, "vol-1")
	if locks, snaps := b.holds(t, "locks"), b.holds(t, "snapshots"); len(locks) != 0 || len(snaps) != 1 {
		t.Errorf("after a canceled backup: locks %v, snapshots %v, want none and one", locks, snaps)
	}
	must(t, a.volume("vol-2", api.VolumeSpec{Backup: "bak-2"}))
	a.ready(t, "vol-2")
	a.same(t, "vol-2", "raw", first)
}

// child runs the agent with backups until the process is killed.
func child(spec string) {
	dir, endpoint, _ := strings.Cut(spec, " ")
	b := bucket{srv: &httptest.Server{URL: endpoint}}
	_, err := openArchive(dir, memstore.New(), longEnough, func(a *archive) error {
		return errors.Join(a.target("bt-1", b.spec()), a.volume("vol-1", api.VolumeSpec{}), a.backup("bak-1", "vol-1", "bt-1"))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// TestBackupKilled: basaltd is killed during a backup. The next process finds the snapshot that
// it was read from, and completes the backup.
func TestBackupKilled(t *testing.T) {
	needs(t)
	b, dir, first := newBucket(t), t.TempDir(), random48(t)
	pool, err := local.Open(local.Options{Dir: filepath.Join(dir, "pool")})
	must(t, err)
	v, err := pool.CreateVolume(t.Context(), sds.VolumeCreate{ID: "vol-1", SizeBytes: diskBytes})
	must(t, err)
	run(t, "qemu-img", "convert", "-n", "-f", "raw", "-O", "qcow2", first, v.Source.Path)
	must(t, pool.Close())

	arrived, killed := make(chan struct{}), make(chan struct{})
	b.at(func() { close(arrived); <-killed })
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+dir+" "+b.srv.URL)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	select {
	case <-arrived:
	case <-patience.After(longEnough):
		t.Error("no data arrived at the target")
	}
	if !b.used(t) {
		t.Error("restic is not found while it sends data")
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	b.setAway(true) // rejects what the killed process' restic still sends
	close(killed)
	// Its lock is not stale while it exists.
	until(t, "the killed process' restic has ended", func() bool { return !b.used(t) })
	b.setAway(false)
	if t.Failed() {
		return
	}

	// The objects that the cluster's store has kept.
	began := time.Now().UTC().Add(-time.Minute)
	a := newArchive(t, dir, memstore.New(), longEnough, func(a *archive) error {
		if _, err := a.pool.Snapshot(t.Context(), "vol-1", "bak-1"); err != nil {
			t.Errorf("snapshot of the killed backup: %v; want it to have been killed during the backup", err)
		}
		return errors.Join(a.target("bt-1", b.spec()), a.volume("vol-1", api.VolumeSpec{}),
			a.put(api.KindBackup, "bak-1", api.BackupSpec{Volume: "vol-1", Target: "bt-1", SizeBytes: diskBytes}, api.BackupAssignment{}),
			a.apply(api.Command{Op: api.OpReport, Kind: api.KindBackup, ID: "bak-1", Expect: api.AnyRevision, Data: api.Encode(api.BackupStatus{Phase: api.BackupRunning, StartedAt: &began})},
				api.Command{Op: api.OpAssign, Kind: api.KindBackup, ID: "bak-1", Expect: api.AnyRevision, Data: api.Encode(api.BackupAssignment{Node: "node-1"})}))
	})
	if st := a.ends(t, "bak-1"); st.Phase != api.BackupSucceeded || !st.StartedAt.Equal(began) {
		t.Fatalf("status of the backup after the kill = %+v, want Succeeded and started at %v", st, began)
	}
	a.unread(t, "vol-1")
	if locks, snaps := b.holds(t, "locks"), b.holds(t, "snapshots"); len(locks) != 0 || len(snaps) != 1 {
		t.Errorf("after the killed backup was completed: locks %v, snapshots %v, want none and one", locks, snaps)
	}
	must(t, a.volume("vol-2", api.VolumeSpec{Backup: "bak-1"}))
	a.ready(t, "vol-2")
	a.same(t, "vol-2", "raw", first)
}
