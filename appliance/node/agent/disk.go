package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// Keys are what disks are opened with.
type Keys interface {
	// Unwrap the passphrase of an encrypted volume.
	Unwrap(ctx context.Context, v api.Volume) ([]byte, error)
	// Ceph is the key of the user, decoded, with which hypervisors open images.
	Ceph(ctx context.Context, user string) ([]byte, error)
}

// rootSerial is by what an instance finds its root volume; it finds others by
// their ids.
const rootSerial = "root"

func serialOf(v api.Volume) string {
	if v.Spec.Root {
		return rootSerial
	}
	return v.Meta.ID
}

// encryption of the volume; nil: it is not encrypted.
func (a *Agent) encryption(ctx context.Context, v api.Volume) (*sds.Encryption, error) {
	if !v.Spec.Encrypted {
		return nil, nil
	}
	if a.o.Keys == nil {
		return nil, api.Errorf(api.CodeUnavailable, "this node has no key of encrypted volumes")
	}
	pass, err := a.o.Keys.Unwrap(ctx, v)
	if err != nil {
		return nil, err
	}
	return &sds.Encryption{Passphrase: pass}, nil
}

// diskSecret and cephSecret are what the hypervisor knows the keys as.
func diskSecret(id api.VolumeID) string { return "volume/" + string(id) }

func cephSecret(pool, user string) string { return "ceph/" + pool + "/" + user }

// diskOf is what the hypervisor is told of a volume. It is pure: pool is the
// storage pool's id.
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

// disk of a volume that is on this node, and what opens it.
type disk struct {
	hypervisor.Disk
	secrets []hypervisor.Secret
}

// findDisk of the volume in its pool.
func (a *Agent) findDisk(ctx context.Context, v api.Volume) (disk, error) {
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil {
		return disk{}, err
	}
	have, err := p.Volume(ctx, api.VolumeID(v.Meta.ID))
	if err != nil {
		return disk{}, err
	}
	return a.openable(ctx, v, have, p)
}

// openable is the disk with the keys that open it.
func (a *Agent) openable(ctx context.Context, v api.Volume, have sds.Volume, p sds.Driver) (disk, error) {
	k := disk{Disk: diskOf(v, have, p.PoolID())}
	e, err := a.encryption(ctx, v)
	if err != nil {
		return disk{}, err
	}
	if e != nil {
		k.secrets = append(k.secrets, hypervisor.NewSecret(hypervisor.SecretDisk, diskSecret(api.VolumeID(v.Meta.ID)), e.Passphrase))
	}
	if r := have.Source.RBD; r != nil && r.User != "" {
		if a.o.Keys == nil {
			return disk{}, api.Errorf(api.CodeUnavailable, "this node has no key of the Ceph cluster")
		}
		key, err := a.o.Keys.Ceph(ctx, r.User)
		if err != nil {
			return disk{}, err
		}
		k.secrets = append(k.secrets, hypervisor.NewSecret(hypervisor.SecretCeph, cephSecret(p.PoolID(), r.User), key))
	}
	return k, nil
}

// withSecrets lets the hypervisor open the disks while f runs. QEMU then has
// the passphrases itself, and they are forgotten; Ceph's key stays, for it is
// of all disks.
func (a *Agent) withSecrets(ctx context.Context, disks []disk, f func() error) error {
	defer a.unsetSecrets(context.WithoutCancel(ctx), disks)
	if err := a.setSecrets(ctx, disks); err != nil {
		return err
	}
	return f()
}

func (a *Agent) setSecrets(ctx context.Context, disks []disk) error {
	for _, k := range disks {
		for _, s := range k.secrets {
			if err := a.o.Machines.SetSecret(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Agent) unsetSecrets(ctx context.Context, disks []disk) {
	for _, k := range disks {
		for _, s := range k.secrets {
			if s.Use != hypervisor.SecretDisk {
				continue
			}
			if err := a.o.Machines.UnsetSecret(ctx, s.UUID); err != nil {
				a.log.Warn("a passphrase is left with the hypervisor", "name", s.Name, "error", err)
			}
		}
	}
}

// forgetKeys of volumes that a machine has opened by now, or will not.
func (a *Agent) forgetKeys(ctx context.Context, volumes []api.VolumeID) {
	for _, id := range volumes {
		if err := a.o.Machines.UnsetSecret(ctx, hypervisor.SecretUUID(diskSecret(id))); err != nil {
			a.log.Warn("a passphrase is left with the hypervisor", "volume", id, "error", err)
		}
	}
}

// attachedTo are the volumes beside the root volume that the instance's machine
// has open when it runs, in their order.
func (a *Agent) attachedTo(in api.Instance) (attached []api.Volume) {
	for _, v := range all(a.cache, a.cache.volumes) {
		if !v.Spec.Root && v.Status.Attached == api.InstanceID(in.Meta.ID) && v.Spec.Instance == v.Status.Attached && v.Meta.DeletedAt == nil {
			attached = append(attached, v)
		}
	}
	return attached
}

// errLater ends a reconcile that has to wait for another's: soon again.
var errLater = errors.New("another step about the same disks is under way")

// holdDisks keeps others from starting the instance's machine, or changing its
// disks, until release is called. It does not wait: a merge of layers may take
// minutes.
func (a *Agent) holdDisks(id api.InstanceID) (release func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.disksHeld[id] {
		return nil, errLater
	}
	a.disksHeld[id] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.disksHeld, id)
	}, nil
}

// confirmVolume asks the store whether the volume is still this node's and the
// instance's: nothing is opened on the cache's word.
func (a *Agent) confirmVolume(ctx context.Context, v api.Volume) error {
	o, err := a.o.Store.Get(ctx, api.KindVolume, v.Meta.ID)
	if err != nil {
		return err
	}
	now, err := api.Decode[api.Volume](o)
	if err != nil {
		return err
	}
	if now.Assignment != v.Assignment || now.Spec.Instance != v.Spec.Instance || now.Status.Attached != v.Status.Attached || now.Meta.DeletedAt != nil {
		a.takeObject(o)
		return errStale
	}
	return nil
}

// claimVolume for what this node does with it.
func (a *Agent) claimVolume(ctx context.Context, v api.Volume) error {
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil {
		return err
	}
	return p.ClaimVolume(ctx, api.VolumeID(v.Meta.ID), sds.Owner{Node: a.o.NodeID, Epoch: v.Assignment.Epoch})
}
