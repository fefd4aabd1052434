package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// use reads and writes, as far as possible, until the store is broken.
func use(s *Store, broken <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for client := range 2 {
			_, _, _ = crashNumber(s, "a", client)
			_, _, _ = crashUsed(s, client)
		}
		_, _ = s.List(ctx, api.ListQuery{Kind: api.KindFlavor, Limit: 100})
		for k := 100; k < 110; k++ {
			_, _ = s.Apply(ctx, statetest.Batch(0, k))
		}
		_ = s.Backup(ctx, &bytes.Buffer{}, nil)
	}()
	select {
	case <-done:
	case <-broken:
	}
	cancel()
	_ = s.Close()
	<-done
}

// However a page of the files is damaged, the store reports which file it is, or
// continues to work. It neither panics nor hangs, and after it has detected the damage,
// it refuses to open.
func TestDamagedPages(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	random := rand.New(rand.NewPCG(11, 0))
	_, good := oneBatch(t)
	seen := map[string]int{}
	for _, name := range []string{"tables.db", "log.db"} {
		for what, damage := range map[string]func(page []byte){
			"zeros": func(p []byte) { clear(p) },
			"noise": func(p []byte) {
				for i := range p {
					p[i] = byte(random.Uint32())
				}
			},
			"header": func(p []byte) { p[8+random.IntN(8)] ^= 0xff },
			"bit":    func(p []byte) { p[random.IntN(len(p))] ^= 1 << random.IntN(8) },
		} {
			for range rounds {
				f := clone(good)
				raw := bytes.Clone(f[name])
				page := 2 + random.IntN(len(raw)/pageBytes-2)
				damage(raw[page*pageBytes:][:pageBytes])
				f[name] = raw
				seen[tryDamaged(t, fmt.Sprintf("%s of page %d of %s", what, page, name), f)]++
			}
		}
	}
	t.Log(seen)
	if seen["refused"] == 0 { // damage that affects objects only is detected by the other nodes: TestCompare
		t.Errorf("outcomes = %v, want some damage refused", seen)
	}
}

func tryDamaged(t *testing.T, what string, f files) string {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	f.write(t, dir)
	broken := make(chan error, 1)
	o := Options{Dir: dir, NodeID: "node-a", Reserve: 1, LeaderWait: time.Second, Broken: func(why error) { broken <- why; close(broken) }}
	s, err := Open(o)
	if err != nil {
		var d *Damaged
		if !errors.As(err, &d) && !strings.Contains(err.Error(), ".db") {
			t.Errorf("%s: open: %v, want Damaged or an error that names the file", what, err)
		}
		return "refused"
	}
	watch := patience.Start()
	use(s, broken)
	if watch.Over(time.Minute) {
		t.Errorf("%s: reads and writes took longer than a minute", what)
	}
	select {
	case why := <-broken:
		if why == nil {
			return "broken" // reported before
		}
		refused(t, Options{Dir: dir, NodeID: "node-a", Reserve: 1}, ".db: ")
		return "broken"
	default:
		return "unseen"
	}
}

// Truncating a file while the store is open would cause a memory fault. The next read
// or write detects that the file has become shorter, and the store stops with an error;
// the process continues, and the store does not open again.
func TestCutWhileOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, name := range []string{"tables.db", "log.db"} {
		dir := filepath.Join(t.TempDir(), "store")
		c := child(t, "cut", dir+" "+name)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil || !strings.Contains(string(out), name+": it was truncated while in use: it has 8192 bytes") {
			t.Errorf("child with truncated %s: %v, output %s, want it to report the file\n%s", name, err, out, stderr.Bytes())
		}
		refused(t, Options{Dir: dir, NodeID: "node-a", Reserve: 1}, name+": ")
	}
}

// childCuts truncates a file of its store and continues.
func childCuts(arg string) error {
	dir, name, _ := strings.Cut(arg, " ")
	broken := make(chan error, 1)
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1, Broken: func(why error) { broken <- why }})
	if err != nil {
		return err
	}
	for k := 1; k <= 20; k++ {
		if _, err := s.Apply(context.Background(), statetest.Batch(0, k)); err != nil {
			return err
		}
	}
	if err := os.Truncate(filepath.Join(dir, name), 2*pageBytes); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	used := make(chan struct{})
	go func() {
		defer close(used)
		if name == "tables.db" {
			_, _ = s.List(ctx, api.ListQuery{Kind: api.KindFlavor, Limit: 100})
		}
		_, _ = s.Apply(ctx, statetest.Batch(0, 21))
	}()
	fmt.Println(<-broken)
	cancel()
	_ = s.Close() // it may fail to write
	<-used
	return nil
}

// An entry with a changed byte is neither applied nor sent to others: the store reports
// the file.
func TestChangedEntry(t *testing.T) {
	_, good := oneBatch(t)
	f := clone(good)
	f["log.db"] = bytes.ReplaceAll(good["log.db"], []byte("c0-45"), []byte("c0-44"))
	if bytes.Equal(f["log.db"], good["log.db"]) {
		t.Fatal("the log contains no entry c0-45")
	}
	if seen := tryDamaged(t, "another byte in an entry", f); seen == "unseen" {
		t.Errorf("outcome of a changed byte in an entry = %q, want it detected", seen)
	}
}

// A write also detects that the tables were truncated, and not only by a fault.
func TestCutBeforeWrite(t *testing.T) {
	tb := bare(t)
	mustApply(t, tb, logEntry(t, 1, statetest.Batch(0, 1)))
	if err := os.Truncate(tb.path, 2*pageBytes); err != nil {
		t.Fatal(err)
	}
	_, err := tb.apply([]state.Entry{logEntry(t, 2, statetest.Batch(0, 2))})
	var d *Damaged
	if !errors.As(err, &d) || d.File != tb.path {
		t.Errorf("write to truncated tables: %v, want Damaged of %s", err, tb.path)
	}
}

// Damaged or missing snapshots that the store needs are damage of the store: starting
// again would not help.
func TestDamagedSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "good")
	o := Options{Dir: dir, NodeID: "node-a", Reserve: 1, SnapshotEvery: 8}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	writeRange(t, s, 1, 60)
	if err := s.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if first, err := s.log.FirstIndex(); err != nil || first < 2 {
		t.Fatalf("first index of the log = %d, %v; want at least 2", first, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	each := func(t *testing.T, dir, name string, change func(path string) error) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", name))
		if err != nil || len(found) == 0 {
			t.Fatalf("snapshot files %s = %v, %v; want some", name, found, err)
		}
		for _, path := range found {
			if err := change(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"state changed": func(t *testing.T, dir string) {
			each(t, dir, "state.bin", func(path string) error {
				raw, err := os.ReadFile(path)
				if err == nil {
					raw[len(raw)/2] ^= 1
					err = os.WriteFile(path, raw, 0o600)
				}
				return err
			})
		},
		"state gone": func(t *testing.T, dir string) { each(t, dir, "state.bin", os.Remove) },
		"meta gone":  func(t *testing.T, dir string) { each(t, dir, "meta.json", os.Remove) },
		"folder gone": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "snapshots")); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "snapshots")
			if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Dir = filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(o.Dir, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(dir + ".promise")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(o.Dir+".promise", raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(o.Dir, "tables.db")); err != nil { // they are rebuilt from the snapshot
				t.Fatal(err)
			}
			damage(t, o.Dir)
			refused(t, o, "/snapshots: ")
		})
	}
}

// A file that grows while its size is checked was not truncated.
func TestGrowingIsNotCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := extent{path: path}
	var grown atomic.Bool
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for !grown.Load() {
				if err := e.check(); err != nil {
					t.Errorf("check of a growing file: %v", err)
					return
				}
			}
		})
	}
	for size := range int64(20_000) {
		if err := errors.Join(f.Truncate(size), e.check()); err != nil {
			t.Errorf("check after growing to %d: %v", size, err)
			break
		}
	}
	grown.Store(true)
	all.Wait()
	if err := f.Truncate(1); err != nil {
		t.Fatal(err)
	}
	var d *Damaged
	if err := e.check(); !errors.As(err, &d) {
		t.Errorf("check of a truncated file: %v, want Damaged", err)
	}
}

// filled returns the path of tables with some hundred pages, and the tables.
func filled(t *testing.T) (string, *tables) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tables.db")
	f, err := openTables(path)
	if err != nil {
		t.Fatal(err)
	}
	err = f.update(func(tx *bbolt.Tx) error {
		for i := range uint64(1000) {
			if err := tx.Bucket([]byte("meta")).Put(binary.BigEndian.AppendUint64(nil, i), make([]byte, 500)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path, f
}

// Tables that are truncated while they are written are damaged, and can be closed.
func TestCutWhileWritten(t *testing.T) {
	path, f := filled(t)
	var d *Damaged
	err := f.held.grown(func() error {
		return f.update(func(tx *bbolt.Tx) error {
			if err := os.Truncate(path, 8192); err != nil {
				return err
			}
			_ = tx.Bucket([]byte("meta")).Get(binary.BigEndian.AppendUint64(nil, 999))
			return nil
		})
	})
	if !errors.As(err, &d) {
		t.Errorf("write to tables that are truncated: %v, want Damaged", err)
	}
	if err := f.close(); err != nil {
		t.Errorf("close truncated tables: %v", err)
	}
}

// A lock that is soon released, like that of a process that was killed, does not hide
// damage.
func TestCutAndLocked(t *testing.T) {
	path, f := filled(t)
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := openTables(path); !errors.Is(err, bbolterrors.ErrTimeout) {
		t.Errorf("open locked tables: %v, want ErrTimeout", err)
	}
	time.AfterFunc(lockWait/10, func() { _ = held.Close() })
	var d *Damaged
	if _, err := openTables(path); !errors.As(err, &d) {
		t.Errorf("open truncated tables: %v, want Damaged", err)
	}
}
