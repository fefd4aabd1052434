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

// variablesKeeper keeps a copy of guests' UEFI variables beside their root volumes, where
// the pool is shared, so that an instance that is started on another node has them there
// (docs/machine-classes.md).
type variablesKeeper struct {
	*core

	mu   sync.Mutex
	kept map[api.InstanceID]variablesStamp // by this process
}

// variablesStamp tells one content of the file from another.
type variablesStamp struct {
	epoch    int64
	modified time.Time
	bytes    int64
}

// maxVariables of a guest, in bytes: OVMF's file has 528 KiB.
const maxVariables = 2 << 20

// keeper of the instance's root volume; nil: its variables stay on this node.
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

// keep what the instance's variables have become in its run here, if they have changed
// since they were kept.
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
	case after != before: // the guest is writing: the next look has all of it
		return nil
	}
	state, err := packVariables(raw)
	if err == nil {
		err = keeper.KeepState(ctx, in.Assignment.RootVolume, epoch, state)
	}
	if api.CodeOf(err) == api.CodeTooLarge { // it would be so again: what was kept before stays
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

// restore the instance's variables, before a run begins here, if another node has had them
// since, or this one has none. epoch is that of the run that was here last.
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

// forget an instance that is not this node's any more.
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

// packVariables: most of them is flash that nothing was written to.
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
