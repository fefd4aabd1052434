package backup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup/backuptest"
	"github.com/basalt-gpu/basalt/sds/luks"
)

const (
	mib       = 1 << 20
	diskBytes = 24 * mib
	password  = "a password"
)

func newTool(t *testing.T) *Tool {
	t.Helper()
	if testing.Short() {
		t.Skip("runs restic and QEMU's storage daemon")
	}
	for _, tool := range []string{"restic", "qemu-img", "qemu-storage-daemon"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %s is not installed: installer/dev/setup.sh installs it", tool)
		}
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil || os.Getuid() != 0 {
		t.Skipf("host: FUSE cannot be used by this user: %v", err)
	} else {
		_ = f.Close()
	}
	base := t.TempDir()
	tool, err := Open(Tool{Dir: filepath.Join(base, "disks"), Cache: filepath.Join(base, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(tool.Dir); err != nil || len(left) > 0 {
			t.Errorf("left in the directory for disks: %v, %v, want nothing", left, err)
		}
	})
	return tool
}

// newDisk creates an empty disk.
func newDisk(t *testing.T, key *sds.Encryption) Disk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", path, "24M").CombinedOutput(); err != nil {
		t.Fatalf("qemu-img create: %v: %s", err, out)
	}
	if key != nil {
		if err := luks.EncryptQCOW2(path, key.Passphrase); err != nil {
			t.Fatal(err)
		}
	}
	return Disk{Source: sds.Source{Path: path, Format: sds.QCOW2, Encrypted: key != nil}, SizeBytes: diskBytes, Encryption: key}
}

// write writes n random bytes.
func write(t *testing.T, tool *Tool, d Disk, at int64, n int, seed uint64) {
	t.Helper()
	data := make([]byte, n)
	src := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = src.Read(data)
	err := tool.expose(t.Context(), d, true, func(_ context.Context, file string) error {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(data, at)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sum(t *testing.T, tool *Tool, d Disk) (digest [32]byte) {
	t.Helper()
	err := tool.expose(t.Context(), d, false, func(_ context.Context, file string) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		n, err := io.Copy(h, f)
		if n != d.SizeBytes {
			t.Errorf("the disk's file has %d bytes, want %d", n, d.SizeBytes)
		}
		copy(digest[:], h.Sum(nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func wantCode(t *testing.T, what string, err error, code api.Code) {
	t.Helper()
	if err == nil || api.CodeOf(err) != code {
		t.Errorf("%s: error = %v, want code %s", what, err, code)
	}
}

// bucket returns an S3 store that can be made unreachable.
func bucket(t *testing.T) (Target, *atomic.Bool) {
	t.Helper()
	back := s3mem.New()
	if err := back.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	var gone atomic.Bool
	store := gofakes3.New(back).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return Target{S3: &S3{Endpoint: srv.URL, Bucket: "backups", Region: "us-east-1", AccessKey: "key", SecretKey: "secret"}, Password: password}, &gone
}

// directory returns a directory with a repository.
func directory(t *testing.T) Target {
	t.Helper()
	target := Target{Directory: t.TempDir(), Password: password}
	backuptest.Directory(t, target.Directory, password)
	return target
}

// TestPrepare checks that Prepare creates a target's repository, once, and
// that nothing else does.
func TestPrepare(t *testing.T) {
	tool := newTool(t)
	remote, _ := bucket(t)
	for what, target := range map[string]Target{"a directory": {Directory: t.TempDir(), Password: password}, "a bucket": remote} {
		wantCode(t, what+" that was not prepared", tool.Answers(t.Context(), target), api.CodeUnavailable)
		_, err := tool.Run(t.Context(), target, newDisk(t, nil), "bak-1", nil)
		wantCode(t, what+" that was not prepared, for a backup", err, api.CodeUnavailable)
		for range 2 {
			if err := errors.Join(tool.Prepare(t.Context(), target), tool.Answers(t.Context(), target)); err != nil {
				t.Errorf("Prepare and Answers of %s: %v", what, err)
			}
		}
	}
}

// TestAnswersCreatesNothing checks that a query of a target takes no lock: others would see it.
func TestAnswersCreatesNothing(t *testing.T) {
	tool, target := newTool(t), directory(t)
	locks := filepath.Join(target.Directory, "locks")
	if err := os.Chtimes(locks, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := tool.Answers(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Stat(locks); err != nil || !f.ModTime().Equal(time.Unix(1, 0)) {
		t.Errorf("locks were last changed at %v, error %v, want no change by Answers", f.ModTime(), err)
	}
}

func TestDirectory(t *testing.T) {
	tool := newTool(t)
	testTarget(t, tool, directory(t), &sds.Encryption{Passphrase: []byte("0f2ad6b1c9e84c3f9d6ba1e2f3041526")})
}

func TestS3(t *testing.T) {
	tool := newTool(t)
	target, _ := bucket(t)
	backuptest.Bucket(t, target.S3.Endpoint+"/"+target.S3.Bucket, password)
	testTarget(t, tool, target, nil)
}

// testTarget checks that backups are complete, store only new data, and can be
// deleted individually.
func testTarget(t *testing.T, tool *Tool, target Target, key *sds.Encryption) {
	ctx := t.Context()
	d := newDisk(t, key)
	write(t, tool, d, 0, 16*mib, 1)
	first := sum(t, tool, d)
	if err := tool.Prepare(ctx, target); err != nil { // does nothing
		t.Fatal(err)
	}
	var last Progress
	one, err := tool.Run(ctx, target, d, "bak-1", func(p Progress) { last = p })
	if err != nil || one.TotalBytes != diskBytes || one.AddedBytes < 16*mib || last.TotalBytes != 0 && last.DoneBytes > diskBytes {
		t.Fatalf("Run = %+v, %v with last progress %+v, want %d bytes in total and at least %d added", one, err, last, diskBytes, 16*mib)
	}
	write(t, tool, d, 5*mib, 64<<10, 2)
	d.MachineState = []byte("variables and keys\n")
	two, err := tool.Run(ctx, target, d, "bak-2", nil)
	if err != nil || two.TotalBytes != diskBytes || two.AddedBytes < 64<<10 || two.AddedBytes > 12*mib {
		t.Errorf("second Run = %+v, %v, want %d bytes in total and 64 KiB to 12 MiB added", two, err, diskBytes)
	}
	if again, err := tool.Run(ctx, target, d, "bak-2", nil); err != nil || again.TotalBytes != diskBytes || again.AddedBytes != -1 && again.AddedBytes != two.AddedBytes {
		t.Errorf("Run of an existing backup = %+v, %v, want %d bytes in total and -1 or %d added", again, err, diskBytes, two.AddedBytes)
	}
	err = tool.expose(ctx, d, false, func(ctx context.Context, file string) error {
		short := d
		short.SizeBytes += mib
		_, err := tool.store(ctx, target, file, short, "bak-3", nil)
		return err
	})
	wantCode(t, "a disk shorter than its size", err, api.CodeUnavailable)
	if have, err := tool.find(ctx, target, "bak-3"); err != nil || len(have) != 0 {
		t.Errorf("restic snapshots of an incomplete disk = %v, %v, want none", have, err)
	}
	for id, want := range map[api.BackupID]string{"bak-1": "", "bak-2": "variables and keys\n"} {
		if got, err := tool.MachineState(ctx, target, id); err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("MachineState of %s = %q, %v, want %q", id, got, err, want)
		}
	}
	wrong := target
	wrong.Password = "another"
	_, err = tool.Run(ctx, wrong, d, "bak-3", nil)
	wantCode(t, "a wrong password", err, api.CodeForbidden)

	into := newDisk(t, nil) // the restored disk need not be encrypted
	if err := tool.Restore(ctx, target, "bak-1", into, nil); err != nil || sum(t, tool, into) != first {
		t.Errorf("Restore of bak-1: %v, or another content, want that of the first backup", err)
	}
	if st, err := os.Stat(into.Source.Path); err != nil || st.Size() > 20*mib {
		t.Errorf("the restored file has %d bytes, %v, want at most %d: zeros take no space", st.Size(), err, 20*mib)
	}
	if err := tool.Delete(ctx, target, "bak-1"); err != nil {
		t.Errorf("Delete of bak-1: %v", err)
	}
	_, err = tool.Size(ctx, target, "bak-1")
	wantCode(t, "a deleted backup", err, api.CodeNotFound)
	small := into
	small.SizeBytes = mib
	wantCode(t, "restore into a volume that is too small", tool.Restore(ctx, target, "bak-2", small, nil), api.CodeInvalid)
	into = newDisk(t, nil)
	if err := tool.Restore(ctx, target, "bak-2", into, nil); err != nil || sum(t, tool, into) != sum(t, tool, d) {
		t.Errorf("Restore of bak-2: %v, or another content, want that of the disk", err)
	}
	if err := tool.Check(ctx, target, false); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// TestTargetGone checks that a target that becomes unreachable during a backup
// is left without backup and lock, and works again when it returns.
func TestTargetGone(t *testing.T) {
	tool := newTool(t)
	target, gone := bucket(t)
	ctx := t.Context()
	backuptest.Bucket(t, target.S3.Endpoint+"/"+target.S3.Bucket, password)
	d := newDisk(t, nil)
	write(t, tool, d, 0, 16*mib, 1)
	patience := tool.Stall // needed on a busy machine
	tool.Stall = 10 * time.Second
	err := tool.expose(ctx, d, false, func(ctx context.Context, file string) error {
		gone.Store(true)
		_, err := tool.store(ctx, target, file, d, "bak-1", nil)
		return err
	})
	wantCode(t, "an unreachable target", err, api.CodeUnavailable)
	tool.Stall = patience
	gone.Store(false)
	if have, err := tool.find(ctx, target, "bak-1"); err != nil || len(have) != 0 {
		t.Errorf("restic snapshots of an interrupted backup = %v, %v, want none", have, err)
	}
	if got, err := tool.Run(ctx, target, d, "bak-1", nil); err != nil || got.TotalBytes != diskBytes {
		t.Errorf("Run after the target's return = %+v, %v, want %d bytes in total", got, err, diskBytes)
	}
	if err := tool.Delete(ctx, target, "bak-1"); err != nil { // requires an exclusive lock
		t.Errorf("Delete of bak-1: %v", err)
	}
}

// TestLockOfTheDead checks that the lock of a node that died does not block
// later operations.
func TestLockOfTheDead(t *testing.T) {
	tool := newTool(t)
	target := directory(t)
	d := newDisk(t, nil)
	write(t, tool, d, 0, mib, 1)
	if _, err := tool.Run(t.Context(), target, d, "bak-1", nil); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	cmd := exec.Command("restic", "backup", "--stdin", "--host", "basalt")
	cmd.Stdin = r
	cmd.Env = append(os.Environ(), "RESTIC_REPOSITORY="+target.Directory, "RESTIC_PASSWORD="+target.Password, "RESTIC_CACHE_DIR="+tool.Cache)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	locks := func() int {
		all, _ := os.ReadDir(filepath.Join(target.Directory, "locks"))
		// A temporary file is not a lock yet, and remains if its writer is killed:
		// nothing waits for it, and restic does not remove it.
		return len(slices.DeleteFunc(all, func(f os.DirEntry) bool { return strings.Contains(f.Name(), "-tmp-") }))
	}
	patience.Until(t, time.Minute, "a lock", func() bool { return locks() > 0 })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if locks() == 0 {
		t.Fatal("the killed process left no lock, so this test proves nothing")
	}
	if err := tool.Delete(t.Context(), target, "bak-1"); err != nil {
		t.Errorf("Delete of bak-1: %v", err)
	}
	if n := locks(); n != 0 {
		t.Errorf("%d locks after Delete, want none", n)
	}
}

func TestDamaged(t *testing.T) {
	tool := newTool(t)
	ctx := t.Context()
	target := directory(t)
	d := newDisk(t, nil)
	write(t, tool, d, 0, 8*mib, 1)
	if _, err := tool.Run(ctx, target, d, "bak-1", nil); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(target.Directory, "data", "*", "*"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("packs in the repository = %v, %v, want some", packs, err)
	}
	for _, p := range packs {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) < mib {
			continue // contains metadata
		}
		raw[len(raw)/2] ^= 1
		if err := errors.Join(os.Chmod(p, 0o600), os.WriteFile(p, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "check", tool.Check(ctx, target, true), api.CodeState)
	wantCode(t, "restore", tool.Restore(ctx, target, "bak-1", newDisk(t, nil), nil), api.CodeState)
}

// TestDiskGone checks that a disk that becomes unreadable during a backup
// leaves no backup.
func TestDiskGone(t *testing.T) {
	tool := newTool(t)
	ctx := t.Context()
	target := directory(t)
	d := newDisk(t, nil)
	err := tool.expose(ctx, d, false, func(ctx context.Context, file string) error {
		out, err := exec.Command("pgrep", "-P", strconv.Itoa(os.Getpid()), "qemu-storage").Output()
		if err != nil {
			t.Fatalf("pgrep: %v", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		patience.Until(t, time.Minute, "the end of "+file, func() bool { _, err := os.Stat(file); return err != nil })
		_, err = tool.store(ctx, target, file, d, "bak-1", nil)
		return err
	})
	wantCode(t, "an unreadable disk", err, api.CodeUnavailable)
	if err == nil || !strings.Contains(err.Error(), "the volume is no longer readable") {
		t.Errorf("Run of an unreadable disk = %v, want an error that the volume is no longer readable", err)
	}
	if have, err := tool.find(ctx, target, "bak-1"); err != nil || len(have) != 0 {
		t.Errorf("restic snapshots of an interrupted backup = %v, %v, want none", have, err)
	}
	if _, err := tool.Run(ctx, target, d, "bak-1", nil); err != nil {
		t.Errorf("Run after the disk's return: %v", err)
	}
}

// TestAddedIsAskedOfRestic checks the decoding of restic's snapshots, before
// and since 0.17.
func TestAddedIsAskedOfRestic(t *testing.T) {
	var all []found
	says := `[{"id":"a","tags":["bak-1"]},{"id":"b","summary":{"backup_start":"2026-11-22T01:00:00Z","data_added":0,"total_bytes_processed":25165824}},
		{"id":"c","summary":{"data_added":4194304}}]`
	if err := json.Unmarshal([]byte(says), &all); err != nil || len(all) != 3 {
		t.Fatalf("decoded snapshots = %v, %v, want 3", all, err)
	}
	for i, want := range []int64{-1, 0, 4 << 20} {
		if got := all[i].added(); got != want {
			t.Errorf("added bytes of %s = %d, want %d", all[i].ID, got, want)
		}
	}
}
