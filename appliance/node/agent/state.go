package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/machinestate"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// stateKeeper stores what a guest has on no disk, its UEFI variables and its TPM,
// with its root volume (docs/machine-classes.md):
//
//	beside the volume, in a shared pool, so that an instance that is started on
//	another node has them there; the highest epoch is the newest
//	with each snapshot of the volume, so that a rollback brings them back, too
//
// Nothing of it is used before it is complete: the drivers and restore replace
// whole files, and the run's file gets the new epoch only afterwards.
type stateKeeper struct {
	*core
	disks *diskSet

	mu   sync.Mutex
	kept map[api.InstanceID]stateStamp // last stored by this process
}

// stateStamp identifies a version of the state, and where it was stored.
type stateStamp struct {
	volume         api.VolumeID
	epoch          int64
	sealed         bool
	variables, tpm fileStamp
}

func newStateKeeper(co *core, disks *diskSet) *stateKeeper {
	return &stateKeeper{core: co, disks: disks, kept: map[api.InstanceID]stateStamp{}}
}

// seals reports whether states are stored with TPMs and encrypted. Otherwise they
// have the variables only, which every node can read.
func (k *stateKeeper) seals() bool { return k.o.Keys != nil && k.o.MachineStates() }

// beside returns the driver that stores states with the instance's root volume, or
// nil if the instance has no state.
func (k *stateKeeper) beside(in api.Instance) (keeper sds.StateKeeper, shared bool) {
	if in.Spec.Firmware != api.FirmwareUEFI {
		return nil, false
	}
	v, ok := get(k.cache, k.cache.volumes, string(in.Assignment.RootVolume))
	if !ok {
		return nil, false
	}
	p, err := k.pools.driver(v.Assignment.Pool)
	if err != nil {
		return nil, false
	}
	keeper, _ = p.(sds.StateKeeper)
	return keeper, api.SharedPool(v.Assignment.Pool)
}

// keep stores the state of the instance's run on this node beside its root volume,
// if the pool is shared and the state has changed since it was last stored. on is
// the volume beside which the instance has a state with all that it needs to be
// started on another node; empty: none.
func (k *stateKeeper) keep(ctx context.Context, in api.Instance, s seen) (on api.VolumeID, err error) {
	on = in.Status.StateVolume
	keeper, shared := k.beside(in)
	if keeper == nil || !shared || s.epoch != in.Assignment.Epoch || s.domain == hypervisor.Incoming {
		return on, nil
	}
	id, now := api.InstanceID(in.Meta.ID), stateStamp{volume: in.Assignment.RootVolume, epoch: s.epoch, sealed: k.seals()}
	if now.variables, now.tpm, err = k.files.stateStamps(in, now.sealed); errors.Is(err, os.ErrNotExist) {
		return on, nil // it was not started yet
	}
	if err != nil {
		return on, err
	}
	k.mu.Lock()
	known := k.kept[id] == now
	k.mu.Unlock()
	if known {
		return on, nil
	}
	if of, err := k.files.readRun(id); err != nil || !of.isOf(in, s.domain.Active()) {
		return on, err
	}
	if !s.domain.Active() { // a rollback replaces the files
		release, err := k.disks.acquire(id)
		if err != nil {
			return on, err
		}
		defer release()
	}
	stored, on, err := k.store(ctx, in, keeper, now)
	if err == nil && !stored && !s.domain.Active() { // nobody else may write then
		err = errChanging
	}
	if err != nil || !stored || now.recent() {
		return on, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[id] = now
	return on, nil
}

// stow stores the state of a stopped instance beside its root volume, whatever pool that
// is in: the volume is about to be copied to another node. A state that was not left by
// a run of this root volume on this node is there already. wrong_state and too_large
// are final.
func (k *stateKeeper) stow(ctx context.Context, in api.Instance) error {
	keeper, _ := k.beside(in)
	if keeper == nil {
		return nil
	}
	last, err := k.files.readRun(api.InstanceID(in.Meta.ID))
	if err != nil || !last.isOf(in, false) || !k.files.hasState(in) {
		return err
	}
	sealed := k.seals()
	if in.Spec.TPM && !sealed {
		return api.Errorf(api.CodeState, "the state of its TPM cannot be encrypted on this node").WithHint("upgrade all nodes of the cluster first")
	}
	state, _, _, err := k.files.readState(in, sealed)
	var raw []byte
	if err == nil {
		raw, err = k.pack(ctx, in.Assignment.RootVolume, state, sealed)
	}
	if err == nil {
		err = keeper.KeepState(ctx, in.Assignment.RootVolume, last.Epoch, raw)
	}
	return wrap(err, "store the machine state of instance %s beside its root volume", in.Meta.ID)
}

// store stores the state with the given stamp beside the root volume. stored is
// false if the guest is writing.
func (k *stateKeeper) store(ctx context.Context, in api.Instance, keeper sds.StateKeeper, now stateStamp) (stored bool, on api.VolumeID, err error) {
	on = in.Status.StateVolume
	state, variables, tpm, err := k.files.readState(in, now.sealed)
	if errors.Is(err, errChanging) || err == nil && (variables != now.variables || tpm != now.tpm) {
		return false, on, nil // the next reconcile stores it
	}
	var raw []byte
	if err == nil {
		raw, err = k.pack(ctx, now.volume, state, now.sealed)
	}
	if err == nil {
		err = keeper.KeepState(ctx, now.volume, now.epoch, raw)
	}
	switch {
	case api.CodeOf(err) == api.CodeTooLarge && !in.Spec.TPM: // a retry would fail, too: the last one stays
		k.log.Warn("UEFI variables are too large to be stored beside the root volume", "id", in.Meta.ID, "error", err)
		return true, "", nil
	case api.CodeOf(err) == api.CodeTooLarge: // it must not be started elsewhere with an older TPM
		on = ""
	case err == nil && now.sealed:
		on = now.volume
	}
	if err != nil {
		err = fmt.Errorf("store the machine state beside the root volume: %w", err)
	}
	return err == nil, on, err
}

// recent reports whether a file was changed so recently that another change may
// have left its stamp as it is: file systems count time in ticks.
func (s stateStamp) recent() bool {
	return time.Since(s.variables.modified) < time.Second || s.sealed && time.Since(s.tpm.modified) < time.Second
}

// restoredEpoch is the epoch of a state that came with its root volume from a backup.
// It may also be that of an instance's first assignment, whose runs replace the state.
const restoredEpoch = 0

// restoredSince reports whether the root volume was restored from a backup and has not
// been started since: the last run on this node was of another one.
func (k *stateKeeper) restoredSince(in api.Instance, last runFile) bool {
	v, ok := get(k.cache, k.cache.volumes, string(in.Assignment.RootVolume))
	return ok && v.Spec.Backup != "" && last.Root != in.Assignment.RootVolume
}

// newer returns the state beside the root volume if the instance must be started
// with it, and not with the files on this node: another node has stored a newer
// one, the root volume was restored with one, or this node has none. last is the
// last run on this node.
func (k *stateKeeper) newer(ctx context.Context, in api.Instance, last runFile) (*machinestate.State, error) {
	keeper, _ := k.beside(in)
	if keeper == nil {
		return nil, nil
	}
	whole := k.files.hasState(in)
	if whole && last.Epoch == in.Assignment.Epoch && last.Root == in.Assignment.RootVolume {
		return nil, nil
	}
	raw, of, err := keeper.KeptState(ctx, in.Assignment.RootVolume)
	if err != nil {
		return nil, fmt.Errorf("read the machine state beside the root volume: %w", err)
	}
	if raw == nil || of <= last.Epoch && whole && (of != restoredEpoch || !k.restoredSince(in, last)) {
		return nil, nil
	}
	state, err := k.unpack(ctx, in.Assignment.RootVolume, raw)
	if err != nil {
		return nil, fmt.Errorf("machine state beside volume %s: %w", in.Assignment.RootVolume, err)
	}
	if state.Variables == nil { // of a backup without a state
		return nil, nil
	}
	k.log.Info("UEFI variables and TPM are those beside the root volume", "id", in.Meta.ID, "epoch", of)
	return &state, nil
}

// restore makes the instance's state on this node the newest one before a run
// starts.
func (k *stateKeeper) restore(ctx context.Context, in api.Instance, last runFile) error {
	state, err := k.newer(ctx, in, last)
	if err != nil || state == nil {
		return err
	}
	return k.files.writeState(in, *state)
}

// forget drops what is known of an instance that is not this node's any more.
func (k *stateKeeper) forget(id api.InstanceID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, id)
}

// pack encodes a state, and encrypts it for the volume if seal is set.
func (k *stateKeeper) pack(ctx context.Context, v api.VolumeID, s machinestate.State, seal bool) ([]byte, error) {
	if !seal {
		raw, err := machinestate.EncodeVariables(s.Variables)
		return raw, wrap(err, "encode UEFI variables")
	}
	raw, err := s.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode the machine state: %w", err)
	}
	sealed, err := k.o.Keys.SealState(ctx, v, raw)
	return sealed, wrap(err, "encrypt the machine state for volume %s", v)
}

// unpack returns the state that pack has packed for the volume.
func (k *stateKeeper) unpack(ctx context.Context, v api.VolumeID, raw []byte) (machinestate.State, error) {
	if machinestate.IsVariables(raw) {
		s, err := machinestate.DecodeVariables(raw)
		return s, wrap(err, "decode UEFI variables")
	}
	if k.o.Keys == nil {
		return machinestate.State{}, api.Errorf(api.CodeUnavailable, "this node has no keys of machine states")
	}
	plain, err := k.o.Keys.OpenState(ctx, v, raw)
	if err != nil {
		return machinestate.State{}, fmt.Errorf("decrypt the machine state of volume %s: %w", v, err)
	}
	s, err := machinestate.Decode(plain)
	return s, wrap(err, "decode the machine state")
}

// readState reads the instance's state on this node, and the TPM's if that is wanted.
// It returns os.ErrNotExist if a part does not exist, and errChanging if the guest is
// writing.
func (f *instanceFiles) readState(in api.Instance, tpm bool) (s machinestate.State, ofVariables, ofTPM fileStamp, err error) {
	id := api.InstanceID(in.Meta.ID)
	s.Variables, ofVariables, err = readStable(f.nvramPath(id), machinestate.MaxVariables)
	if err == nil && in.Spec.TPM && tpm {
		s.TPM, ofTPM, err = readStable(f.tpmPath(id), machinestate.MaxTPM)
	}
	return s, ofVariables, ofTPM, err
}

// stateStamps returns the stamps that readState returns, without reading.
func (f *instanceFiles) stateStamps(in api.Instance, tpm bool) (ofVariables, ofTPM fileStamp, err error) {
	id := api.InstanceID(in.Meta.ID)
	ofVariables, err = stampOf(f.nvramPath(id))
	if err == nil && in.Spec.TPM && tpm {
		ofTPM, err = stampOf(f.tpmPath(id))
	}
	return ofVariables, ofTPM, err
}

// hasState reports whether this node has all files of the instance's state.
func (f *instanceFiles) hasState(in api.Instance) bool {
	id := api.InstanceID(in.Meta.ID)
	return exists(f.nvramPath(id)) && (!in.Spec.TPM || exists(f.tpmPath(id)))
}

// writeState replaces the instance's state on this node. libvirt makes swtpm's user
// the owner of the TPM's file when the machine starts.
func (f *instanceFiles) writeState(in api.Instance, s machinestate.State) error {
	id := api.InstanceID(in.Meta.ID)
	if s.Variables != nil {
		if err := os.MkdirAll(f.dir(id), 0o755); err != nil {
			return err
		}
		if err := f.o.writeFile(f.nvramPath(id), s.Variables); err != nil {
			return err
		}
	}
	if !in.Spec.TPM || s.TPM == nil {
		return nil
	}
	dir := filepath.Dir(f.tpmPath(id))
	// The folder of the machine is root's, so that swtpm's user cannot replace the
	// one in it; the modes are libvirt's.
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return f.o.writeFile(f.tpmPath(id), s.TPM)
}
