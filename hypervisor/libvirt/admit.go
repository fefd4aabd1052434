package libvirt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// admit gives QEMU access to what libvirt does not manage: the directory in
// which it creates its screen's socket, and the socket of the vGPU. A missing
// file is not an error here; the start of the machine reports it.
func (d *Driver) admit(spec hypervisor.Domain) error {
	var paths []string
	if spec.VNCSocket != "" {
		paths = append(paths, filepath.Dir(spec.VNCSocket))
	}
	if spec.VGPUSocket != "" {
		paths = append(paths, spec.VGPUSocket)
	}
	for _, path := range paths {
		if err := d.giveToQEMU(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// giveToQEMU makes QEMU's user the owner of the file, if QEMU does not run as
// root.
func (d *Driver) giveToQEMU(path string) error {
	u, err := user.Lookup(d.opt.QEMUUser)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return nil // QEMU runs as root here
	} else if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("parse user ID of %s: %w", u.Username, err)
	}
	return os.Lchown(path, uid, -1)
}
