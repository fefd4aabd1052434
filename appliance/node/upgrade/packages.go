package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Packages stores packages in a directory, each in a file named by its SHA-256 sum.
// A file of that name has that sum. Packages may be used concurrently.
type Packages struct{ Dir string }

const (
	// keepFor is how long a package is kept that no upgrade names.
	keepFor = 24 * time.Hour
	// maxFiles is the limit of files in the directory, leaveFree what must stay
	// free on its disk, in bytes.
	maxFiles  = 2 * api.MaxUpgradePackages
	leaveFree = 1 << 30
)

// Path returns the path of a package, whether it exists or not.
func (p Packages) Path(sum string) string { return filepath.Join(p.Dir, sum) }

// Has reports whether the package is stored.
func (p Packages) Has(sum string) bool {
	_, err := os.Stat(p.Path(sum))
	return err == nil && api.IsSHA256(sum)
}

// Open opens a package; the error's code is api.CodeNotFound if it is not stored.
func (p Packages) Open(sum string) (*os.File, error) {
	if !api.IsSHA256(sum) || !p.Has(sum) {
		return nil, api.Errorf(api.CodeNotFound, "package %s does not exist on this node", clip(sum))
	}
	return os.Open(p.Path(sum))
}

// clip limits the length of a text that another node has sent.
func clip(s string) string { return s[:min(len(s), 64)] }

// Put stores a package if its content has the sum, and the size unless that is -1.
func (p Packages) Put(ctx context.Context, sum string, content io.Reader, size int64) error {
	switch {
	case !api.IsSHA256(sum):
		return api.Errorf(api.CodeInvalid, "%q is not a SHA-256 sum", clip(sum))
	case size > api.MaxUpgradePackageBytes:
		return api.Errorf(api.CodeInvalid, "package %s is too large: %d bytes", sum, size).WithHint("want at most %d", int64(api.MaxUpgradePackageBytes))
	case p.Has(sum):
		return nil
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	if err := p.room(max(size, 0)); err != nil {
		return err
	}
	return atomicfile.Write(p.Path(sum), 0o600, func(f *os.File) error { return receive(ctx, f, sum, content, size) })
}

// room checks the limits of the number of files and of the disk's free space.
func (p Packages) room(size int64) error {
	files, err := os.ReadDir(p.Dir)
	if err != nil {
		return err
	}
	if len(files) >= maxFiles {
		return api.Errorf(api.CodeState, "this node already has %d packages", len(files)).WithHint("packages that no upgrade names are deleted after a day")
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(p.Dir, &disk); err != nil {
		return fmt.Errorf("%s: %w", p.Dir, err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < size+leaveFree {
		return api.Errorf(api.CodeState, "this node has %d MiB free on its disk, but a package of %d MiB requires %d MiB", free>>20, size>>20, (size+leaveFree)>>20)
	}
	return nil
}

// receive copies a package into a file and checks its size and sum.
func receive(ctx context.Context, f *os.File, sum string, content io.Reader, size int64) error {
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(reader{ctx, content}, api.MaxUpgradePackageBytes+1))
	got := hex.EncodeToString(hash.Sum(nil))
	switch {
	case err != nil:
		return fmt.Errorf("receive package %s: %w", sum, err)
	case n > api.MaxUpgradePackageBytes:
		return api.Errorf(api.CodeInvalid, "package %s is too large: want at most %d bytes", sum, int64(api.MaxUpgradePackageBytes))
	case size >= 0 && n != size:
		return api.Errorf(api.CodeInvalid, "package %s: received %d bytes, want %d", sum, n, size).WithHint("send it again")
	case got != sum:
		return api.Errorf(api.CodeInvalid, "received package has SHA-256 sum %s, want %s", got, sum).WithHint("send it again")
	}
	return nil
}

// reader is a reader that fails when its context has ended.
type reader struct {
	ctx context.Context //nolint:containedctx // of the one copy that it is for
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// Sweep removes packages that are not named and older than a day, and incomplete
// files of that age.
func (p Packages) Sweep(named []api.UpgradePackage, now time.Time) error {
	files, err := os.ReadDir(p.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	keep := map[string]bool{}
	for _, n := range named {
		keep[n.Sha256] = true
	}
	for _, f := range files {
		info, infoErr := f.Info()
		if infoErr != nil || keep[f.Name()] || now.Sub(info.ModTime()) < keepFor {
			continue
		}
		if api.IsSHA256(f.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(p.Dir, f.Name())))
		}
	}
	return errors.Join(err, atomicfile.Sweep(now.Add(-keepFor), p.Dir))
}
