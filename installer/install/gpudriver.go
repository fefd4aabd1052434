package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/gpudriver"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// GPUDriverFile requests NVIDIA's driver: basalt-gpu-driver.service installs it at the
// node's first start.
const GPUDriverFile = "etc/basalt/gpu-driver"

// mediumPackages are the packages on the installation medium: the headers of its kernel
// and a compiler are among them.
var mediumPackages = answers.Place{Path: machine.LiveMedium + "/packages"}

// driverPackage is the package that a directory with the driver's packages must have.
const driverPackage = "nvidia-open-kernel-dkms_*.deb"

// CheckPackages checks that a place has the driver's packages, before anything is erased.
type CheckPackages struct{ From answers.Place }

// CopyPackages copies packages, except Basalt's own, to a directory below the target.
type CopyPackages struct {
	From answers.Place
	To   string
}

func (a CheckPackages) String() string { return "check   packages in " + a.From.String() }
func (a CopyPackages) String() string {
	return "copy    packages of " + a.From.String() + " to " + a.To
}

// checkDriver returns the actions that check a request for the driver.
func checkDriver(d *answers.GPUDriver) []Action {
	if d == nil || d.From == nil {
		return nil
	}
	return []Action{CheckPackages{*d.From}}
}

// requestDriver returns the actions that pass a request for the driver to the node.
func requestDriver(d *answers.GPUDriver) []Action {
	if d == nil {
		return nil
	}
	options := "--accept-nvidia-license"
	acts := []Action{Mkdir{gpudriver.Kept, 0o755}, CopyPackages{mediumPackages, gpudriver.KeptMedium}}
	if d.From != nil {
		acts = append(acts, CopyPackages{*d.From, gpudriver.KeptStick})
		options += " --from /" + gpudriver.KeptStick
	}
	return append(acts, Write{GPUDriverFile, 0o644, "# Read by basalt-gpu-driver.service, which installs NVIDIA's driver and then removes this\n" +
		"# file. NVIDIA's license was accepted when this node was installed.\n" +
		"GPU_DRIVER_OPTIONS=\"" + options + "\"\n"})
}

// onMedium calls f with the directory of a place, whose medium it mounts.
func (e *Executor) onMedium(ctx context.Context, p answers.Place, f func(*os.Root) error) (err error) {
	at := e.Packages
	if at == "" {
		at = packagesAt
	}
	unusable := func(err error) error {
		return api.Errorf(api.CodeNotFound, "the packages in %s cannot be read: %v", p, err).At("gpuDriver.packages").WithHint("plug the medium in, and check its label and the directory")
	}
	open := func() (*os.Root, error) { return os.OpenRoot(p.Path) }
	if p.Device != "" {
		if await(ctx, []string{p.Device}, 10*time.Second) != nil {
			return unusable(errors.New("there is no such medium"))
		}
		if err := os.MkdirAll(at, 0o700); err != nil {
			return err
		}
		if err := e.run(ctx, []string{"mount", "-o", "ro,nosuid,nodev,noexec", p.Device, at}, "", io.Discard); err != nil {
			return unusable(err)
		}
		defer func() {
			err = errors.Join(err, e.run(context.WithoutCancel(ctx), []string{"umount", at}, "", io.Discard))
		}()
		open = func() (*os.Root, error) { return openIn(at, p.Path) }
	}
	r, err := open()
	if err != nil {
		return unusable(err)
	}
	return errors.Join(f(r), r.Close())
}

// openIn opens a directory below another; links cannot lead out of it.
func openIn(dir, name string) (*os.Root, error) {
	top, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	r, err := top.OpenRoot(name)
	return r, errors.Join(err, top.Close())
}

// packagesAt is where a medium with packages is mounted.
const packagesAt = "/run/basalt-installer/packages"

// CheckPackages returns an *api.Error unless the place has the driver's packages.
func (e *Executor) CheckPackages(ctx context.Context, p answers.Place) error {
	return e.onMedium(ctx, p, func(r *os.Root) error {
		found, err := fs.Glob(r.FS(), driverPackage)
		if err != nil || len(found) > 0 {
			return err
		}
		return api.Errorf(api.CodeNotFound, "%s has no %s", p, driverPackage).At("gpuDriver.packages").
			WithHint("docs/gpu-nodes.md describes how to download the packages; without packages, they come from Debian's archive")
	})
}

// copyPackages copies the packages, and the signed list of those of a medium.
func (e *Executor) copyPackages(ctx context.Context, a CopyPackages) error {
	if _, err := os.Stat(a.From.Path); a.From.Device == "" && errors.Is(err, fs.ErrNotExist) {
		e.logf("  %s does not exist: the node takes all packages from the archive", a.From.Path)
		return nil
	}
	return e.onMedium(ctx, a.From, func(from *os.Root) error {
		return e.within(func(to *os.Root) error { return copyFiles(ctx, from, to, a.To) })
	})
}

func copyFiles(ctx context.Context, from, to *os.Root, dir string) error {
	entries, err := fs.ReadDir(from.FS(), ".")
	if err != nil {
		return err
	}
	if err := mkdir(to, Mkdir{dir, 0o755}); err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		wanted := name == "InRelease" || name == "Packages" || filepath.Ext(name) == ".deb"
		if !wanted || !entry.Type().IsRegular() || strings.HasPrefix(name, "basalt") {
			continue
		}
		if err := errors.Join(ctx.Err(), copyOne(from, to, name, path.Join(dir, name))); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return nil
}

func copyOne(from, to *os.Root, name, target string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
