package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// Folders are the directories of networkd's files, in the order in which it reads
// them, and of the trial.
type Folders struct {
	Admin     string // precedes all others; installers wrote here before this package existed
	Runtime   string // in memory
	Confirmed string
	State     string // in memory: what is on trial
}

// System has the directories of an installed node.
var System = Folders{
	Admin: "/etc/systemd/network", Runtime: "/run/systemd/network",
	Confirmed: "/usr/local/lib/systemd/network", State: "/run/basalt-network",
}

// DeclarationFile is stored beside the files rendered from it, so that both change
// in one step. networkd ignores files with this extension.
const DeclarationFile = "basalt-network.yaml"

// hidden is the target of the link that hides a file.
const hidden = "/dev/null"

// own returns Basalt's files in a directory, sorted by name.
func own(dir string) ([]hostnet.Rendered, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []hostnet.Rendered
	for _, e := range entries {
		if !ours(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, hostnet.Rendered{Name: e.Name(), Content: string(content)})
	}
	return files, nil
}

func ours(name string) bool {
	return strings.HasPrefix(name, hostnet.Prefix) && (strings.HasSuffix(name, ".network") || strings.HasSuffix(name, ".netdev"))
}

// replace replaces, in one step, the confirmed directory by one with these files
// and the existing files of others.
func (t *Trial) replace(declaration []byte, files []hostnet.Rendered) error {
	dir := t.Folders.Confirmed
	next := dir + ".basalt-new"
	if err := t.step("prepare", func() error {
		return errors.Join(os.RemoveAll(next), os.MkdirAll(next, 0o755)) //nolint:gosec // networkd is another user
	}); err != nil {
		return err
	}
	if err := keepOthers(dir, next); err != nil {
		return fmt.Errorf("copy %s: %w", dir, err)
	}
	if declaration != nil {
		files = append(files[:len(files):len(files)], hostnet.Rendered{Name: DeclarationFile, Content: string(declaration)})
	}
	for _, f := range files {
		if err := t.step("write "+f.Name, func() error { return writeSynced(filepath.Join(next, f.Name), f.Content) }); err != nil {
			return err
		}
	}
	if err := atomicfile.Sync(next); err != nil {
		return err
	}
	if err := t.step("exchange", func() error { return exchange(next, dir) }); err != nil {
		return err
	}
	if err := atomicfile.Sync(filepath.Dir(dir)); err != nil {
		return err
	}
	return t.step("remove old", func() error { return os.RemoveAll(next) })
}

func writeSynced(path, content string) error {
	return atomicfile.WriteFile(path, []byte(content), 0o644)
}

func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(a, b)
	}
	if err != nil {
		return fmt.Errorf("exchange %s and %s: %w", a, b, err)
	}
	return nil
}

// keepOthers copies the files that are not Basalt's.
func keepOthers(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ours(e.Name()) || e.Name() == DeclarationFile {
			continue
		}
		if e.IsDir() {
			if err := os.CopyFS(filepath.Join(to, e.Name()), os.DirFS(filepath.Join(from, e.Name()))); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(filepath.Join(to, e.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// adopt moves files out of Admin that an installer wrote there before this package
// existed, because they would precede those on trial. They are in the confirmed
// directory before they are removed, so that they are always in force.
func (t *Trial) adopt() error {
	old, err := own(t.Folders.Admin)
	if err != nil || len(old) == 0 {
		return err
	}
	if err := t.replace(nil, old); err != nil {
		return err
	}
	for _, f := range old {
		if err := t.step("adopt "+f.Name, func() error { return os.Remove(filepath.Join(t.Folders.Admin, f.Name)) }); err != nil {
			return err
		}
	}
	return atomicfile.Sync(t.Folders.Admin)
}

// clear removes Basalt's files from the runtime directory.
func (t *Trial) clear() error {
	entries, err := os.ReadDir(t.Folders.Runtime)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !ours(e.Name()) {
			continue
		}
		if err := t.step("clear "+e.Name(), func() error { return os.Remove(filepath.Join(t.Folders.Runtime, e.Name())) }); err != nil {
			return err
		}
	}
	return nil
}
