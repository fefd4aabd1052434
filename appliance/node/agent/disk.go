package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// Keys provides the keys that open disks.
type Keys interface {
	// Unwrap returns the passphrase of an encrypted volume.
	Unwrap(ctx context.Context, v api.Volume) ([]byte, error)
	// SealState encrypts the state of the machine with the given root volume, and
	// OpenState decrypts it: invalid for what was not sealed for that volume.
	SealState(ctx context.Context, v api.VolumeID, state []byte) ([]byte, error)
	OpenState(ctx context.Context, v api.VolumeID, sealed []byte) ([]byte, error)
	// Ceph returns the decoded key of the Ceph user with which hypervisors open
	// images.
	Ceph(ctx context.Context, user string) ([]byte, error)
}

// rootSerial is the disk serial by which an instance finds its root volume; the
// serial of other volumes is their ID.
const rootSerial = "root"

func serialOf(v api.Volume) string {
	if v.Spec.Root {
		return rootSerial
	}
	return v.Meta.ID
}

// mover finds the migration that is moving an instance, or a volume without one.
type mover interface {
	moving(id api.InstanceID) (api.Migration, bool)
	movingVolume(id api.VolumeID) bool
}

// diskSet opens volumes for this node's instances. It stores which task is changing an
// instance's disks, the keys that open them, and the claims on volumes.
type diskSet struct {
	*core
	freezer    *freezer
	migrations mover

	mu sync.Mutex
	// held has the IDs of the instances that are starting, or whose disks are being
	// changed, and of volumes that are being changed and belong to no instance.
	held map[string]bool
}

func newDiskSet(co *core) *diskSet {
	d := &diskSet{core: co, held: map[string]bool{}}
	d.freezer = &freezer{core: co, disks: d}
	return d
}

// encryption returns the encryption of the volume, or nil if it is not encrypted.
func (ds *diskSet) encryption(ctx context.Context, v api.Volume) (*sds.Encryption, error) {
	if !v.Spec.Encrypted {
		return nil, nil
	}
	if ds.o.Keys == nil {
		return nil, api.Errorf(api.CodeUnavailable, "this node has no keys of encrypted volumes")
	}
	pass, err := ds.o.Keys.Unwrap(ctx, v)
	if err != nil {
		return nil, fmt.Errorf("unwrap the key of volume %s: %w", v.Meta.ID, err)
	}
	return &sds.Encryption{Passphrase: pass}, nil
}

// cephKey returns the key of the Ceph user with which hypervisors open images.
func (ds *diskSet) cephKey(ctx context.Context, user string) ([]byte, error) {
	if ds.o.Keys == nil {
		return nil, api.Errorf(api.CodeUnavailable, "this node has no key of the Ceph cluster")
	}
	key, err := ds.o.Keys.Ceph(ctx, user)
	return key, wrap(err, "read the key of Ceph user %s", user)
}

// diskSecret and cephSecret return the names of the keys in the hypervisor.
func diskSecret(id api.VolumeID) string { return "volume/" + string(id) }

func cephSecret(pool, user string) string { return "ceph/" + pool + "/" + user }

// diskOf returns the hypervisor's description of a volume. It is pure. pool is the
// ID of the storage pool.
func diskOf(v api.Volume, have sds.Volume, pool string) hypervisor.Disk {
	k := hypervisor.Disk{Serial: serialOf(v), Path: have.Source.Path, Format: string(have.Source.Format), QoS: qosOf(v)}
	secret := func(s sds.Source) string {
		if !s.Encrypted {
			return ""
		}
		return hypervisor.SecretUUID(diskSecret(api.VolumeID(v.Meta.ID)))
	}
	k.Secret = secret(have.Source)
	if r := have.Source.RBD; r != nil {
		k.RBD = &hypervisor.RBD{Pool: r.Pool, Image: r.Image, Monitors: slices.Clone(r.Monitors), User: r.User}
		if r.User != "" {
			k.RBD.SecretUUID = hypervisor.SecretUUID(cephSecret(pool, r.User))
		}
		return k
	}
	for s := have.Source.Backing; s != nil; s = s.Backing {
		k.Backing = append(k.Backing, hypervisor.Layer{Path: s.Path, Format: string(s.Format), Secret: secret(*s)})
	}
	return k
}

func qosOf(v api.Volume) hypervisor.QoS {
	q := v.Spec.Qos
	if q == nil {
		return hypervisor.QoS{}
	}
	return hypervisor.QoS{ReadIOPS: q.ReadIOPS, WriteIOPS: q.WriteIOPS, ReadBytesPerSecond: q.ReadBytesPerSecond, WriteBytesPerSecond: q.WriteBytesPerSecond}
}

// disk is a volume on this node, with the secrets that open it.
type disk struct {
	hypervisor.Disk
	secrets []hypervisor.Secret
}

// find returns the disk of the volume from its pool.
func (ds *diskSet) find(ctx context.Context, v api.Volume) (disk, error) {
	p, err := ds.pools.driver(v.Assignment.Pool)
	if err != nil {
		return disk{}, err
	}
	have, err := findVolume(ctx, p, api.VolumeID(v.Meta.ID))
	if err != nil {
		return disk{}, err
	}
	return ds.openable(ctx, v, have, p)
}

// files returns the paths that a machine opens for the disk.
func files(k hypervisor.Disk) []string {
	all := []string{k.Path}
	for _, l := range k.Backing {
		all = append(all, l.Path)
	}
	return all
}

// openable returns the disk with the keys that open it.
func (ds *diskSet) openable(ctx context.Context, v api.Volume, have sds.Volume, p sds.Driver) (disk, error) {
	k := disk{Disk: diskOf(v, have, p.PoolID())}
	if ds.o.OpenFiles != nil && k.RBD == nil {
		k.Cache, k.AIO = ds.o.OpenFiles(ctx, files(k.Disk))
	}
	e, err := ds.encryption(ctx, v)
	if err != nil {
		return disk{}, err
	}
	if e != nil {
		k.secrets = append(k.secrets, hypervisor.NewSecret(hypervisor.SecretDisk, diskSecret(api.VolumeID(v.Meta.ID)), e.Passphrase))
	}
	if r := have.Source.RBD; r != nil && r.User != "" {
		key, err := ds.cephKey(ctx, r.User)
		if err != nil {
			return disk{}, err
		}
		k.secrets = append(k.secrets, hypervisor.NewSecret(hypervisor.SecretCeph, cephSecret(p.PoolID(), r.User), key))
	}
	return k, nil
}

// withSecrets gives the hypervisor the keys of the disks while f runs. After that
// QEMU has the passphrases itself and they are removed; Ceph's key stays, because
// all disks share it.
func (ds *diskSet) withSecrets(ctx context.Context, disks []disk, f func() error) error {
	defer ds.unsetSecrets(context.WithoutCancel(ctx), disks)
	if err := ds.setSecrets(ctx, disks); err != nil {
		return err
	}
	return f()
}

func (ds *diskSet) setSecrets(ctx context.Context, disks []disk) error {
	for _, k := range disks {
		for _, s := range k.secrets {
			if err := ds.o.Machines.SetSecret(ctx, s); err != nil {
				return fmt.Errorf("pass key %s to the hypervisor: %w", s.Name, err)
			}
		}
	}
	return nil
}

func (ds *diskSet) unsetSecrets(ctx context.Context, disks []disk) {
	for _, k := range disks {
		for _, s := range k.secrets {
			if s.Use != hypervisor.SecretDisk {
				continue
			}
			if err := ds.o.Machines.UnsetSecret(ctx, s.UUID); err != nil {
				ds.log.Warn("remove passphrase from the hypervisor failed", "name", s.Name, "error", err)
			}
		}
	}
}

// forgetKeys removes the passphrases of volumes that a machine has opened by now,
// or will not open.
func (ds *diskSet) forgetKeys(ctx context.Context, volumes []api.VolumeID) {
	for _, id := range volumes {
		if err := ds.o.Machines.UnsetSecret(ctx, hypervisor.SecretUUID(diskSecret(id))); err != nil {
			ds.log.Warn("remove passphrase from the hypervisor failed", "volume", id, "error", err)
		}
	}
}

// attachedTo returns the volumes beside the root volume that the instance's machine
// has open when it runs, in their order.
func (ds *diskSet) attachedTo(in api.Instance) (attached []api.Volume) {
	for _, v := range all(ds.cache, ds.cache.volumes) {
		if !v.Spec.Root && v.Status.Attached == api.InstanceID(in.Meta.ID) && v.Spec.Instance == v.Status.Attached && v.Meta.DeletedAt == nil {
			attached = append(attached, v)
		}
	}
	return attached
}

// errLater ends a reconcile that has to wait for another one; it is retried soon.
var errLater = errors.New("another step on the same disks is in progress")

// acquire prevents other steps from starting the instance's machine, or changing
// its disks, until release is called. It does not wait, as a merge of layers may
// take minutes, but returns errLater.
func (ds *diskSet) acquire(id api.InstanceID) (release func(), err error) {
	return ds.hold(string(id))
}

// acquireVolume prevents other steps from changing the volume, as acquire does for the
// instance that may have it open; without one, from attaching it too. It returns errLater
// while the volume, or that instance, is being moved to another node.
func (ds *diskSet) acquireVolume(id api.VolumeID, holder api.InstanceID) (release func(), err error) {
	if release, err = ds.hold(cmp.Or(string(holder), string(id))); err != nil {
		return nil, err
	}
	if ds.moving(id, holder) {
		release()
		return nil, errLater
	}
	return release, nil
}

// moving reports whether the instance that may have the volume open, or else the volume,
// is being moved to another node.
func (ds *diskSet) moving(id api.VolumeID, holder api.InstanceID) bool {
	if holder == "" {
		return ds.migrations.movingVolume(id)
	}
	_, moving := ds.migrations.moving(holder)
	return moving
}

func (ds *diskSet) hold(id string) (release func(), err error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.held[id] {
		return nil, errLater
	}
	ds.held[id] = true
	return func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		delete(ds.held, id)
	}, nil
}

// confirmVolume checks with the store that the volume still belongs to this node
// and to the instance: the cache alone is never a reason to open anything.
func (ds *diskSet) confirmVolume(ctx context.Context, v api.Volume) error {
	o, err := ds.read(ctx, api.KindVolume, v.Meta.ID)
	if err != nil {
		return err
	}
	now, err := api.Decode[api.Volume](o)
	if err != nil {
		return err
	}
	if now.Assignment != v.Assignment || now.Spec.Instance != v.Spec.Instance || now.Status.Attached != v.Status.Attached || now.Meta.DeletedAt != nil {
		ds.mergeObject(o)
		return errStale
	}
	return nil
}

// claimVolume claims the volume in its pool for this node and epoch.
func (ds *diskSet) claimVolume(ctx context.Context, v api.Volume) error {
	p, err := ds.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	return ds.claim(ctx, p, api.VolumeID(v.Meta.ID), v.Assignment.Epoch)
}

// claim claims a volume of the pool for this node and the epoch.
func (ds *diskSet) claim(ctx context.Context, p sds.Driver, id api.VolumeID, epoch int64) error {
	return wrap(p.ClaimVolume(ctx, id, sds.Owner{Node: ds.o.NodeID, Epoch: epoch}), "claim volume %s in epoch %d", id, epoch)
}

// copied returns a disk of the volume for a backup, with the keys that open it.
func (ds *diskSet) copied(ctx context.Context, v api.Volume, src sds.Source, bytes int64) (d backup.Disk, err error) {
	d = backup.Disk{Source: src, SizeBytes: bytes}
	if d.Encryption, err = ds.encryption(ctx, v); err != nil {
		return d, err
	}
	if r := src.RBD; r != nil && r.User != "" {
		d.CephKey, err = ds.cephKey(ctx, r.User)
	}
	return d, err
}
