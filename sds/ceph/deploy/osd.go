package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// prepareOSD creates the OSD in steps: a secret on this node, an ID from the
// mons, BlueStore on the disk, and its directory last.
func (n Node) prepareOSD(ctx context.Context, in Intent, a Action) error {
	l := n.files()
	d, err := in.disk(a.Name)
	if err != nil {
		return err
	}
	found, err := n.observeDisk(ctx, in, d) // just before the disk is written to
	switch {
	case err != nil:
		return err
	case found.Running || found.Content == Missing || (found.Content == OSD || found.Content == Locked) && found.UUID == d.UUID:
		return nil // it has changed meanwhile: the next observation decides
	case found.Content != Blank && found.Content != Begun && !d.Wipe:
		return fmt.Errorf("%s: %s", d.Path, found.What)
	}
	tmp, err := createTemp(l.osd(d.UUID), true)
	if err != nil {
		return err
	}
	id, err := n.newOSD(ctx, d.UUID, tmp)
	if err != nil {
		return err
	}
	block, err := n.prepareDisk(ctx, in, d, found)
	if err != nil {
		return err
	}
	if err := errors.Join(linkBlock(tmp, block), writeClass(tmp, d.Class), n.prepareDB(ctx, in, d, tmp)); err != nil {
		return err
	}
	args := []string{"--mkfs", "-i", strconv.Itoa(id), "--osd-uuid", d.UUID, "--osd-data", tmp, "--keyring", filepath.Join(tmp, "keyring"), "--conf", l.conf()}
	if _, err := command.Exec(ctx, command.Exe{Program: "ceph-osd", Args: args, Verb: "--mkfs", Timeout: makeTime}); err != nil {
		return fmt.Errorf("create OSD %d on %s: %w", id, d.Path, err)
	}
	if d.Crypt != nil {
		if err := n.devices().Label(ctx, d.Path, in.header(d.UUID, doneLabel)); err != nil {
			return fmt.Errorf("label encrypted %s: %w", d.Path, err)
		}
	}
	if err := publish(tmp, l.osd(d.UUID)); err != nil {
		return err
	}
	return n.startOSD(ctx, in, d.UUID, id)
}

// prepareDisk removes the content of a disk, encrypts it if it is to be, and returns the
// path of what the OSD stores its data on.
func (n Node) prepareDisk(ctx context.Context, in Intent, d Disk, found Found) (string, error) {
	switch {
	case d.Crypt != nil:
		return n.encrypt(ctx, in, d, d.Path, mappingOf(d.UUID), begunLabel)
	case found.Content != Blank:
		return d.Path, wipe(d.Path)
	}
	return d.Path, nil
}

// writeClass sets the device class that the OSD reports when it starts for the first
// time (OSD::update_crush_device_class).
func writeClass(dir, class string) error {
	if class == "" {
		return nil
	}
	return atomicfile.WriteFile(filepath.Join(dir, "crush_device_class"), []byte(class+"\n"), 0o600)
}

func linkBlock(dir, path string) error { return linkDevice(dir, "block", path) }

func linkDevice(dir, name, path string) error {
	link := filepath.Join(dir, name)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(path, link)
}

// newOSD requests the ID for the UUID from the mons; repeating it with the
// same secret returns the same.
func (n Node) newOSD(ctx context.Context, uuid, dir string) (int, error) {
	path := filepath.Join(dir, "secret")
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var key string
		if key, err = newKey(random, now()); err == nil {
			secret, err = []byte(key), atomicfile.WriteFile(path, []byte(key), 0o600)
		}
	}
	if err != nil {
		return 0, err
	}
	raw, err := n.ceph(ctx, fmt.Sprintf(`{"cephx_secret": %q}`, secret), "osd", "new", uuid, "-i", "-")
	if command.Is(err, syscall.EEXIST) {
		return n.forgottenOSD(ctx, uuid, dir)
	}
	if err != nil {
		return 0, err
	}
	var answer struct {
		ID *int `json:"osdid"`
	}
	if err := decode(raw, &answer); err != nil || answer.ID == nil {
		return 0, errors.Join(errors.New("the monitors assigned no ID to the OSD"), err)
	}
	return *answer.ID, n.osdKeyring(dir, *answer.ID, string(secret))
}

// forgottenOSD returns the ID of an OSD that the mons know with a secret that
// this node has lost.
func (n Node) forgottenOSD(ctx context.Context, uuid, dir string) (int, error) {
	c, err := n.cluster(ctx, Intent{})
	if err != nil {
		return 0, err
	}
	at := c.known(uuid)
	if at < 0 {
		return 0, fmt.Errorf("the monitors refused to create OSD %s, and it does not exist", uuid)
	}
	id := c.OSDs[at].ID
	key, err := n.key(ctx, fmt.Sprintf("osd.%d", id))
	if err != nil {
		return 0, err
	}
	return id, n.osdKeyring(dir, id, key)
}

func (n Node) osdKeyring(dir string, id int, key string) error {
	return atomicfile.WriteFile(filepath.Join(dir, "keyring"), []byte(keyring(entity{name: fmt.Sprintf("osd.%d", id), key: key})), 0o600)
}

// adoptOSD creates the directory of an OSD whose disk is complete: the node
// was reinstalled, or the disk came from another.
func (n Node) adoptOSD(ctx context.Context, in Intent, a Action) error {
	d, err := in.disk(a.Name)
	if err != nil {
		return err
	}
	block, err := n.content(ctx, d, a.Path, mappingOf(d.UUID))
	if err != nil {
		return err
	}
	tmp, err := createTemp(n.files().osd(a.Name), false)
	if err != nil {
		return err
	}
	key, err := n.key(ctx, fmt.Sprintf("osd.%d", a.ID))
	if err != nil {
		return err
	}
	args := []string{"prime-osd-dir", "--dev", block, "--path", tmp}
	if _, err := command.Exec(ctx, command.Exe{Program: "ceph-bluestore-tool", Args: args, Verb: "prime-osd-dir"}); err != nil {
		return fmt.Errorf("restore the directory of OSD %d from %s: %w", a.ID, a.Path, err)
	}
	if err := errors.Join(linkBlock(tmp, block), n.osdKeyring(tmp, a.ID, key)); err != nil {
		return err
	}
	if err := publish(tmp, n.files().osd(a.Name)); err != nil {
		return err
	}
	return n.startOSD(ctx, in, a.Name, a.ID)
}
