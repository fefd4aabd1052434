package ceph

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/luks"
)

// LUKS is QEMU's, raw over RBD: a header, and behind it every sector
// encrypted. Parts that were never written read as noise. The passphrase is
// random: stretching it would only cost time.
const passphrase = "key-secret=luks"

// qemuImg runs qemu-img with the passphrase as the secret object "luks", which
// it reads from a pipe.
func (d *Driver) qemuImg(ctx context.Context, key *sds.Encryption, verb string, args ...string) error {
	return d.qemu(ctx, "qemu-img", key, append([]string{verb}, args...)...)
}

func (d *Driver) qemu(ctx context.Context, program string, key *sds.Encryption, args ...string) error {
	// The first argument stays the first: qemu-img requires its verb there.
	x := command.Exe{Program: program, Verb: args[0], Args: args[:1:1], Timeout: longTime}
	if key != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = w.Write(key.Passphrase) // a pipe buffers at least 4 KiB
		if closed := w.Close(); err != nil || closed != nil {
			return fmt.Errorf("create pipe: %w", err)
		}
		x.Files = []*os.File{r}
		x.Args = append(x.Args, "--object", "secret,id=luks,file=/dev/fd/3")
	}
	x.Args = append(x.Args, args[1:]...)
	if err := d.may(program, nil, args); err != nil {
		return err
	}
	_, err := command.Exec(ctx, x)
	return d.explain(ctx, err)
}

// file returns qemu-img's name of a disk.
func (d *Driver) file(disk string) string {
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, "@", `\@`, "=", `\=`)
	return "rbd:" + d.opt.Pool + "/" + disk + ":conf=" + escape.Replace(d.opt.Conf) + ":id=" + d.opt.User
}

// opened returns the options by which qemu-img opens a disk with LUKS.
func (d *Driver) opened(disk, snapshot string) string {
	s := "driver=luks," + passphrase + ",file.driver=rbd,file.pool=" + d.opt.Pool + ",file.image=" + disk +
		",file.conf=" + strings.ReplaceAll(d.opt.Conf, ",", ",,") + ",file.user=" + d.opt.User
	if snapshot != "" {
		s += ",file.snapshot=" + snapshot
	}
	return s
}

// createLUKS creates a disk for size bytes, and returns how many bytes the
// header takes.
func (d *Driver) createLUKS(ctx context.Context, disk string, size int64, key sds.Encryption) (int64, error) {
	header, err := luks.Header(key.Passphrase)
	if err != nil {
		return 0, fmt.Errorf("create the LUKS header of %s: %w", disk, err)
	}
	if _, err := d.run(ctx, bytes.NewReader(header), "rbd", "import", "--no-progress", "-", d.spec(disk)); err != nil {
		return 0, err
	}
	return luks.HeaderBytes, d.resizeDisk(ctx, disk, luks.HeaderBytes+size)
}

// copyIntoLUKS copies a snapshot that is not encrypted to a disk. Zeros are
// written, too.
func (d *Driver) copyIntoLUKS(ctx context.Context, from, disk string, key sds.Encryption) error {
	return d.qemuImg(ctx, &key, "convert", "-n", "-W", "-m", inFlight, "-f", "raw", "--target-image-opts", d.file(from), d.opened(disk, ""))
}

// checkKey checks that the key is the volume's, or that of its snapshot.
func (d *Driver) checkKey(ctx context.Context, id api.VolumeID, s state, a sds.Access, snapshot string) error {
	if err := a.CheckKey(id, s.made.LUKSBytes > 0); err != nil || a.Encryption == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(time.Minute, d.opt.Timeout))
	defer cancel()
	// qemu-img info does not decrypt: it accepts any key.
	err := d.qemu(ctx, "qemu-io", a.Encryption, "-r", "-U", "--image-opts", "-c", "read 0 512", d.opened(s.made.Disk, snapshot))
	if command.Is(err, syscall.EPERM) && strings.Contains(err.Error(), "Invalid password") {
		return sds.WrongKey(id)
	}
	return err
}
