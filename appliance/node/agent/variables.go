package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
)

// variablesKeeper copies guests' UEFI variables beside their root volumes, if the
// pool is shared, so that an instance that is started on another node has them
// there (docs/machine-classes.md).
type variablesKeeper struct {
	*core

	mu   sync.Mutex
	kept map[api.InstanceID]variablesStamp // last copied by this process
}

// variablesStamp identifies a version of the file.
type variablesStamp struct {
	epoch    int64
	modified time.Time
	bytes    int64
}

// maxVariables is the largest size of a guest's variables, in bytes; OVMF's file
// has 528 KiB.
const maxVariables = 2 << 20

// keeper returns the driver that stores the variables beside the instance's root
// volume, or nil if they stay on this node.
func (k *variablesKeeper) keeper(in api.Instance) sds.StateKeeper {
	if in.Spec.Firmware != api.FirmwareUEFI {
		return nil
	}
	v, ok := get(k.cache, k.cache.volumes, string(in.Assignment.RootVolume))
	if !ok || !api.SharedPool(v.Assignment.Pool) {
		return nil
	}
	p, err := k.pools.driver(v.Assignment.Pool)
	if err != nil {
		return nil
	}
	keeper, _ := p.(sds.StateKeeper)
	return keeper
}

// keep copies the instance's variables of its run on this node, if they have
// changed since the last copy.
func (k *variablesKeeper) keep(ctx context.Context, in api.Instance, epoch int64) error {
	keeper, id := k.keeper(in), api.InstanceID(in.Meta.ID)
	if keeper == nil || epoch != in.Assignment.Epoch {
		return nil
	}
	path := k.files.nvramPath(id)
	before, err := stampOf(path, epoch)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	known := k.kept[id] == before
	k.mu.Unlock()
	if known {
		return nil
	}
	raw, err := readVariables(path)
	if err != nil {
		return err
	}
	switch after, err := stampOf(path, epoch); {
	case err != nil:
		return err
	case after != before: // the guest is writing: the next reconcile copies all of it
		return nil
	}
	state, err := packVariables(raw)
	if err == nil {
		err = keeper.KeepState(ctx, in.Assignment.RootVolume, epoch, state)
	}
	if api.CodeOf(err) == api.CodeTooLarge { // a retry would fail, too: the last copy stays
		k.log.Warn("UEFI variables are too large to be kept beside the root volume", "id", id, "error", err)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("keep the UEFI variables beside the root volume: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[id] = before
	return nil
}

// restore restores the instance's variables before a run starts on this node, if
// another node has copied newer ones, or this one has none. epoch is that of the
// last run on this node.
func (k *variablesKeeper) restore(ctx context.Context, in api.Instance, epoch int64) error {
	keeper, path := k.keeper(in), k.files.nvramPath(api.InstanceID(in.Meta.ID))
	if keeper == nil || epoch == in.Assignment.Epoch && exists(path) {
		return nil
	}
	state, of, err := keeper.KeptState(ctx, in.Assignment.RootVolume)
	if err != nil {
		return fmt.Errorf("read the UEFI variables beside the root volume: %w", err)
	}
	if state == nil || of <= epoch && exists(path) {
		return nil
	}
	raw, err := unpackVariables(state)
	if err != nil {
		return fmt.Errorf("UEFI variables beside volume %s: %w", in.Assignment.RootVolume, err)
	}
	k.log.Info("UEFI variables are those that the instance had on its last node", "id", in.Meta.ID, "epoch", of)
	return atomicfile.WriteFile(path, raw, 0o600)
}

// forget drops the state of an instance that is not this node's any more.
func (k *variablesKeeper) forget(id api.InstanceID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, id)
}

func stampOf(path string, epoch int64) (variablesStamp, error) {
	st, err := os.Stat(path)
	if err != nil {
		return variablesStamp{}, err
	}
	return variablesStamp{epoch, st.ModTime(), st.Size()}, nil
}

func readVariables(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxVariables+1))
	if err == nil && len(raw) > maxVariables {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxVariables)
	}
	return raw, err
}

// packVariables compresses the variables: most of the file is flash that was never
// written.
func packVariables(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

func unpackVariables(state []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(state))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxVariables+1))
	if err == nil && len(raw) > maxVariables {
		err = fmt.Errorf("longer than %d bytes", maxVariables)
	}
	return raw, err
}
