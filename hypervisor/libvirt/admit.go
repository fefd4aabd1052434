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

// admit lets QEMU at what libvirt does not give it: the folder in which it
// makes its screen's socket itself, and the socket of the vGPU. What is not
// there is missed when the machine starts.
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

// giveToQEMU makes the file QEMU's, where QEMU is not root.
func (d *Driver) giveToQEMU(path string) error {
	u, err := user.Lookup(d.opt.QEMUUser)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return nil // QEMU is root here
	} else if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("parse user ID of %s: %w", u.Username, err)
	}
	return os.Lchown(path, uid, -1)
}
