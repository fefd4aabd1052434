package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/release"
	"github.com/basalt-gpu/basalt/hypervisor/iso9660"
)

// defaultReleaseKey is the file in which an installed node keeps the key of its medium.
const defaultReleaseKey = "/etc/apt/keyrings/basalt.gpg"

// isMedium reports whether a medium is mounted at the directory.
func isMedium(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, release.Folder, "InRelease"))
	return err == nil
}

// openMedium opens a directory, or an ISO image in a file or on a device.
func openMedium(path string) (fs.FS, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		return os.DirFS(path), f, nil
	}
	size, err := f.Seek(0, io.SeekEnd) // also works for a device
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	disc, err := iso9660.Open(f, size)
	if err != nil {
		return nil, nil, errors.Join(api.Errorf(api.CodeInvalid, "%s is not an installation medium: %s", path, err).
			WithHint("give the ISO image, or a directory with packages"), f.Close())
	}
	return disc, f, nil
}

// sendMedium verifies a medium and uploads its packages. It uploads nothing before all of them
// match what was signed.
func (a *App) sendMedium(ctx context.Context, path, key string) (spec api.UpgradeSpec, err error) {
	medium, done, err := openMedium(path)
	if err != nil {
		return spec, err
	}
	defer done.Close()
	r, err := readRelease(medium, path, key)
	if err != nil {
		return spec, err
	}
	var packages []release.Package
	for _, name := range nodePackages {
		p, err := r.Find(name)
		if err != nil {
			return spec, fmt.Errorf("search medium %s: %w", path, err)
		}
		packages = append(packages, p)
	}
	spec.Version = packages[0].Version
	for _, p := range packages {
		if p.Version != spec.Version {
			return spec, api.Errorf(api.CodeInvalid, "medium %s: the version of %s is %s, want %s as that of %s", path, p.Name, p.Version, spec.Version, packages[0].Name)
		}
	}
	if err := a.notOlder(ctx, path, spec.Version); err != nil {
		return spec, err
	}
	fmt.Fprintf(a.Err, "%s brings %s, made %s and signed by %s\n", path, spec.Version, r.At.UTC().Format("2006-01-02 15:04 UTC"), r.Signer)
	files := make([]io.ReadSeeker, len(packages))
	for i, p := range packages {
		f, err := a.verified(medium, p)
		if err != nil {
			return spec, err
		}
		defer f.(fs.File).Close()
		files[i] = f
	}
	for i, p := range packages {
		u := api.UpgradePackage{Name: p.Name, SizeBytes: p.SizeBytes, Sha256: p.SHA256}
		if err := a.putPackage(ctx, u, files[i]); err != nil {
			return spec, fmt.Errorf("%s: %w", p.Path, err)
		}
		spec.Packages = append(spec.Packages, u)
	}
	return spec, nil
}

// readRelease reads the keys, and the release that one of them signed.
func readRelease(medium fs.FS, path, key string) (r release.Release, err error) {
	f, err := os.Open(key)
	if err != nil {
		return r, api.Errorf(api.CodeInvalid, "no key to verify the medium with: %s", err).
			WithHint("copy " + defaultReleaseKey + " of a node, and name the copy with --release-key")
	}
	defer f.Close()
	keys, err := release.Keys(f)
	if err != nil {
		return r, api.Errorf(api.CodeInvalid, "%s is not a file of OpenPGP keys: %s", key, err)
	}
	r, err = release.Read(medium, keys)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, api.Errorf(api.CodeInvalid, "%s has no signed packages: it is another disc, or the medium of a release before them", path)
	case err != nil && api.CodeOf(err) != api.CodeInvalid:
		return r, api.Errorf(api.CodeInvalid, "%s cannot be read: %s", path, err).WithHint("fetch the medium again, and compare its checksum")
	case err != nil:
		return r, fmt.Errorf("read the release on medium %s: %w", path, err)
	}
	return r, nil
}

// verified opens a package of the medium and compares it with its checksum.
func (a *App) verified(medium fs.FS, p release.Package) (io.ReadSeeker, error) {
	f, err := medium.Open(p.Path)
	if err != nil {
		return nil, api.Errorf(api.CodeInvalid, "the medium lacks a package: %s", err).WithHint("fetch the medium again, and compare its checksum")
	}
	file, ok := f.(io.ReadSeeker)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is not a plain file", p.Path), f.Close())
	}
	sum, err := a.checksum(file, p.SizeBytes)
	if err == nil && sum != p.SHA256 {
		err = api.Errorf(api.CodeInvalid, "%s of the medium is not what was signed: its SHA-256 sum is %s, want %s", p.Path, sum, p.SHA256).
			WithHint("the medium is damaged or was changed: fetch it again, and compare its checksum")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file, nil
}

// notOlder returns an error if the release is older than one that a node runs.
func (a *App) notOlder(ctx context.Context, path, version string) error {
	for n, err := range client.Of[api.Node](a.api).All(ctx, client.Query{}) {
		if err != nil {
			return err
		}
		runs := n.Status.Version
		if release.ValidVersion(runs) && release.Compare(version, runs) < 0 {
			return api.Errorf(api.CodeState, "%s brings %s, which is older than %s of node %s", path, version, runs, n.Meta.Name).
				WithHint("basalt cluster upgrade DIR, with the packages in a directory, goes back where the state of the cluster allows it")
		}
	}
	return nil
}
