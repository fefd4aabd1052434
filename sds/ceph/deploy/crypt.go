package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/sds/dmcrypt"
)

// Encryption is that of an OSD: its disk, and the partition with its database, are each
// encrypted with LUKS2, which the OSD's key opens.
//
//	disk  header "begun" ─mkfs in the mapping─► header "done" ─AdoptOSD | StartOSD─► …
//	      ─OpenOSD, after a boot─► mapping ─ReleaseDisk─► closed, header destroyed, blank
//
// What has a header "begun" is made again from the start, with another volume key.
type Encryption struct {
	Key Secret // empty on other nodes
	// Lacks is why the key is not available on this node; empty: it is.
	Lacks string
}

// Secret is a key. It is not printed: behind a pointer, as fmt does not call Format for a
// verb that does not fit what contains the key.
type Secret struct{ text *string }

// NewSecret returns a Secret.
func NewSecret(text string) Secret { return Secret{&text} }

// Format implements fmt.Formatter.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(secret)") }

// Devices encrypts devices, and opens encrypted ones; dmcrypt.Kernel implements it.
type Devices interface {
	Format(ctx context.Context, device string, h dmcrypt.Header, key []byte, scratch string) error
	Label(ctx context.Context, device string, h dmcrypt.Header) error
	Open(ctx context.Context, device, name string, key []byte) error
	Close(ctx context.Context, name string) error
	Find(ctx context.Context, device, name string) (dmcrypt.Mapping, error)
	Names(ctx context.Context, prefix string) ([]string, error)
	Shred(device string) error
}

// Labels of headers.
const (
	begunLabel = "basalt-osd-begun"
	doneLabel  = "basalt-osd"
	dbLabel    = "basalt-osd-db"
	fsidPrefix = "ceph_fsid="
)

// MappingPrefix begins the names of the mappings of OSDs.
const MappingPrefix = "basalt-osd-"

func mappingOf(uuid string) string   { return MappingPrefix + uuid }
func dbMappingOf(uuid string) string { return MappingPrefix + uuid + "-db" }

func (in Intent) header(uuid, label string) dmcrypt.Header {
	return dmcrypt.Header{UUID: uuid, Label: label, Subsystem: fsidPrefix + in.FSID}
}

func (n Node) devices() Devices {
	if n.Crypt == nil {
		return dmcrypt.Kernel{}
	}
	return n.Crypt
}

// probeHeader returns what the header of an encrypted disk shows. ok is false if the
// disk is not an OSD.
func probeHeader(fsid string, head []byte, f Found) (_ Found, ok bool) {
	h, ok := dmcrypt.Decode(head)
	if !ok || h.Label != begunLabel && h.Label != doneLabel || !uuidForm.MatchString(h.UUID) {
		return f, false
	}
	f.UUID, f.Encrypted = h.UUID, true
	of := strings.TrimPrefix(h.Subsystem, fsidPrefix)
	switch {
	case of != fsid:
		f.Content, f.What = Other, "an encrypted OSD of another Ceph cluster, "+of
	case h.Label == begunLabel:
		f.Content = Begun
	default:
		f.Content = Locked
	}
	return f, true
}

// observeMapping observes the mapping of an encrypted disk, and what is in it.
func (n Node) observeMapping(ctx context.Context, in Intent, d Disk, f Found) (Found, error) {
	m, err := n.devices().Find(ctx, d.Path, mappingOf(d.UUID))
	if err != nil {
		return f, fmt.Errorf("find the mapping of %s: %w", d.Path, err)
	}
	f.Mapped = m.Path != ""
	if f.Content != Locked || f.UUID != d.UUID || !m.Over {
		return f, nil
	}
	inner, err := probe(ctx, in.FSID, m.Path)
	switch {
	case err != nil:
		return f, err
	case inner.Content == OSD && inner.UUID == d.UUID:
		f.Content, f.ID = OSD, inner.ID
	default:
		f.Content, f.What = Other, "it is encrypted, and its content is not its OSD"
		if inner.What != "" {
			f.What += ": " + inner.What
		}
	}
	return f, nil
}

// observeDBMapping observes the mapping of an encrypted database, on the partition device.
func (n Node) observeDBMapping(ctx context.Context, d Disk, device string, f *Found) error {
	if d.Crypt == nil {
		return nil
	}
	m, err := n.devices().Find(ctx, device, dbMappingOf(d.UUID))
	if err != nil {
		return fmt.Errorf("find the mapping of the database of OSD %s: %w", d.UUID, err)
	}
	f.DBOpen, f.Mapped = m.Over, f.Mapped || m.Path != ""
	return nil
}

// isOpen reports whether the mappings that the OSD needs are open.
func (f Found) isOpen(d Disk) bool {
	return !f.Encrypted || f.Content == OSD && (d.DB == nil || f.DBOpen)
}

// lacksKey returns why the OSD cannot be created or opened, or "".
func (d Disk) lacksKey(f Found) string {
	switch {
	case d.Crypt == nil && f.Encrypted:
		return "it is encrypted, and the cluster has no key for it"
	case d.Crypt != nil && d.Crypt.Lacks != "":
		return "its key is not available: " + d.Crypt.Lacks
	}
	return ""
}

// nextOpen returns the action that opens an encrypted OSD.
func nextOpen(d Disk, f Found) []Action {
	if why := d.lacksKey(f); why != "" {
		return []Action{{Do: Refuse, Name: d.UUID, Path: d.Path, Why: why}}
	}
	return []Action{{Do: OpenOSD, Name: d.UUID, Path: d.Path}}
}

// openOSD opens the disk of an encrypted OSD, and its database.
func (n Node) openOSD(ctx context.Context, in Intent, a Action) error {
	d, err := in.disk(a.Name)
	if err != nil {
		return err
	}
	if err := n.open(ctx, d, d.Path, mappingOf(d.UUID)); err != nil || d.DB == nil {
		return err
	}
	t, _, p, ok, err := dbOf(ctx, in, d)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("its database is not on %s any more", t.Path)
	}
	if err := n.present(ctx, t, p); err != nil {
		return err
	}
	return n.open(ctx, d, p.path, dbMappingOf(d.UUID))
}

func (n Node) open(ctx context.Context, d Disk, device, name string) error {
	key, err := d.key()
	if err != nil {
		return err
	}
	if err := n.devices().Open(ctx, device, name, key); err != nil {
		return fmt.Errorf("OSD %s: %w", d.UUID, err)
	}
	return nil
}

// key returns the key of an encrypted OSD, which is never empty.
func (d Disk) key() ([]byte, error) {
	if why := d.lacksKey(Found{Encrypted: true}); why != "" {
		return nil, errors.New(why)
	}
	if d.Crypt.Key.text == nil || *d.Crypt.Key.text == "" {
		return nil, errors.New("its key is empty")
	}
	return []byte(*d.Crypt.Key.text), nil
}

// encrypt makes a device a new encrypted one, opens it, and returns the path of its
// content, which is undefined. The device's old content is lost.
func (n Node) encrypt(ctx context.Context, in Intent, d Disk, device, name, label string) (string, error) {
	key, err := d.key()
	if err != nil {
		return "", err
	}
	if err := n.devices().Close(ctx, name); err != nil { // of an attempt that was interrupted
		return "", fmt.Errorf("encrypt %s: %w", device, err)
	}
	if err := wipe(device); err != nil {
		return "", err
	}
	h := in.header(d.UUID, label)
	if label == dbLabel {
		h.UUID = "" // another one: that of the OSD is its disk's
	}
	scratch := filepath.Join(n.files().osds(), ".header-"+d.UUID)
	if err := n.devices().Format(ctx, device, h, key, scratch); err != nil {
		return "", fmt.Errorf("encrypt %s: %w", device, err)
	}
	if err := n.open(ctx, d, device, name); err != nil {
		return "", err
	}
	return n.content(ctx, d, device, name)
}

// content returns the path of what an OSD stores on a device: the device itself, or its
// open mapping.
func (n Node) content(ctx context.Context, d Disk, device, name string) (string, error) {
	if d.Crypt == nil {
		return device, nil
	}
	m, err := n.devices().Find(ctx, device, name)
	if err == nil && !m.Over {
		err = fmt.Errorf("encrypted %s is not open", device)
	}
	return m.Path, err
}

// closeOSD closes the mappings of an OSD that does not run.
func (n Node) closeOSD(ctx context.Context, uuid string) error {
	return errors.Join(n.devices().Close(ctx, mappingOf(uuid)), n.devices().Close(ctx, dbMappingOf(uuid)))
}

// mappedOSDs returns the UUIDs of the OSDs of which a mapping is open on this node. Only
// mappings that are named exactly as mappingOf and dbMappingOf do are taken for ours.
func (n Node) mappedOSDs(ctx context.Context) (uuids []string, err error) {
	names, err := n.devices().Names(ctx, MappingPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the mappings of OSDs: %w", err)
	}
	for _, name := range names {
		uuid := strings.TrimSuffix(strings.TrimPrefix(name, MappingPrefix), "-db")
		if uuidForm.MatchString(uuid) && !slices.Contains(uuids, uuid) {
			uuids = append(uuids, uuid)
		}
	}
	slices.Sort(uuids)
	return uuids, nil
}

// nextForgotten closes the mappings of OSDs that the cluster does not have any more: their
// disks died, or were pulled, before they were released here. The intent has every OSD
// of the cluster, so that one of another node counts as known; and what is closed by
// mistake is opened again by OpenOSD. One that is in use stays open.
func nextForgotten(in Intent, o Observed) (do []Action) {
	for _, uuid := range o.Mapped {
		if !slices.ContainsFunc(in.Disks, func(d Disk) bool { return d.UUID == uuid }) {
			do = append(do, Action{Do: CloseOSD, Name: uuid})
		}
	}
	return do
}

// erase destroys the content of a device that an OSD does not use any more. The header
// of an encrypted one goes first: without it no key opens what remains.
func (n Node) erase(device string, encrypted bool) error {
	if encrypted {
		if err := n.devices().Shred(device); err != nil {
			return fmt.Errorf("erase %s: %w", device, err)
		}
	}
	return wipe(device)
}
