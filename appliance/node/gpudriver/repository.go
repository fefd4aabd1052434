package gpudriver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// Kept is where the installer keeps packages on the node, below the root of the file
	// system.
	Kept = "var/lib/basalt/gpu-driver"
	// KeptMedium has the packages of the installation medium.
	KeptMedium = Kept + "/medium"
	// KeptStick has the packages of another medium, which the answers name.
	KeptStick = Kept + "/stick"
	// keyring is the key that media are signed with.
	keyring = "/etc/apt/keyrings/basalt.gpg"
	// workDir has apt's files of one installation.
	workDir = "run/basalt-gpu-driver"
	// maxFiles limits the packages of a directory.
	maxFiles = 10_000
)

// localSources returns entries of apt's sources for the directories. A directory with the
// signed packages of a medium is used as it is. For others, whose packages the operator
// trusts by naming them, a list of packages is written.
func (n *Installer) localSources(ctx context.Context, dirs []string) (string, error) {
	var lines string
	for i, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		// The medium's own folder, if the medium was named.
		if _, err := os.Stat(filepath.Join(abs, "packages/InRelease")); err == nil {
			abs = filepath.Join(abs, "packages")
		}
		if _, err := os.Stat(filepath.Join(abs, "InRelease")); err == nil {
			if strings.ContainsAny(abs, " \t\n[]") {
				return "", refuse("mount or copy it elsewhere", "%s: apt cannot read a path with spaces or brackets", abs)
			}
			if !n.exists(keyring) {
				return "", refuse("copy it from another node, or from whoever builds the media", "%s is missing: it has the key that the packages in %s are signed with", keyring, abs)
			}
			lines += fmt.Sprintf("deb [signed-by=%s] file:%s ./\n", keyring, abs)
			continue
		}
		to := filepath.Join(n.Root, workDir, fmt.Sprintf("from%d", i))
		if err := n.index(ctx, abs, to); err != nil {
			return "", err
		}
		lines += fmt.Sprintf("deb [trusted=yes] file:%s ./\n", to)
	}
	return lines, nil
}

// index makes a repository in the directory to of links to the packages in dir.
func (n *Installer) index(ctx context.Context, dir, to string) error {
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	switch {
	case len(debs) == 0:
		if _, err := os.Stat(dir); err != nil {
			return refuse("name the directory with the packages", "%s cannot be read: %s", dir, errors.Unwrap(err))
		}
		return refuse("docs/gpu-nodes.md describes how to download them", "%s contains no packages (*.deb)", dir)
	case len(debs) > maxFiles:
		return refuse("name a directory with the driver's packages only", "%s contains %d packages, want at most %d", dir, len(debs), maxFiles)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	var list bytes.Buffer
	for i, deb := range debs {
		var control bytes.Buffer
		if err := n.Command(ctx, []string{"dpkg-deb", "-f", deb}, &control); err != nil {
			return refuse("copy it again, or remove it", "%s is not a package, or is damaged: %s", deb, err)
		}
		sum, size, err := checksum(deb)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("p%d.deb", i)
		if err := os.Symlink(deb, filepath.Join(to, name)); err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n", bytes.TrimSpace(control.Bytes()), name, size, sum)
	}
	return os.WriteFile(filepath.Join(to, "Packages"), list.Bytes(), 0o644) //nolint:gosec // apt reads it as another user
}

func checksum(name string) (sum string, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), size, errors.Join(err, f.Close())
}

// aptOptions prepares apt's options for an installation: with the directories of From and
// the medium's packages only, or with the configured archives and the medium's packages.
func (n *Installer) aptOptions(ctx context.Context, o Options) ([]string, error) {
	work := filepath.Join(n.Root, workDir)
	if err := os.RemoveAll(work); err != nil {
		return nil, err
	}
	parts := filepath.Join(work, "parts")
	for _, dir := range []string{parts, filepath.Join(work, "lists/partial")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	dirs := o.From
	if kept := filepath.Join(n.Root, KeptMedium); n.exists(KeptMedium) {
		dirs = append(dirs[:len(dirs):len(dirs)], kept)
	}
	local, err := n.localSources(ctx, dirs)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(parts, "local.list"), []byte(local), 0o644); err != nil { //nolint:gosec // as above
		return nil, err
	}
	options := []string{
		"-o", "Dir::Etc::SourceParts=" + parts, "-o", "Dir::State::Lists=" + filepath.Join(work, "lists"),
		"-o", "Dir::Cache::PkgCache=", "-o", "Dir::Cache::SrcPkgCache=", "-o", "APT::Sandbox::User=root",
	}
	if len(o.From) > 0 {
		return append(options, "-o", "Dir::Etc::SourceList=/dev/null"), nil
	}
	return options, n.linkParts(parts)
}

// linkParts adds the node's own sources of apt to a directory.
func (n *Installer) linkParts(parts string) error {
	names, err := filepath.Glob(filepath.Join(n.Root, "etc/apt/sources.list.d/*"))
	for _, name := range names {
		if e := os.Symlink(name, filepath.Join(parts, filepath.Base(name))); e != nil && !errors.Is(e, fs.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
