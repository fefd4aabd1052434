package agent

import (
	"context"
	"reflect"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Lease reports whether the cluster lets this node run what could run elsewhere.
type Lease interface{ Valid() bool }

// Fence kills instances when the node's lease ends.
type Fence interface {
	// Keep replaces the list of those that it must leave alone: they can run
	// nowhere else. What it does not know it kills.
	Keep(ids []api.InstanceID) error
}

// fenceKeeper decides what may run here by the node's lease, and tells the
// fence what it must leave alone.
type fenceKeeper struct {
	*core
	epoch *observedEpoch

	mu   sync.Mutex
	kept []api.InstanceID // what the fence has; nil: unknown
}

func (k *fenceKeeper) leased() bool { return k.o.Lease == nil || k.o.Lease.Valid() }

// movable reports whether the instance may be running elsewhere by now, as far as
// this node knows.
func (k *fenceKeeper) movable(in api.Instance) bool {
	root, ok := get(k.cache, k.cache.volumes, string(in.Assignment.RootVolume))
	return !ok || api.Movable(in, root)
}

// bound are the instances that can run here only. One whose root volume is not
// known is not among them: killed in vain is better than run twice.
func (k *fenceKeeper) bound() []api.InstanceID {
	ids := []api.InstanceID{}
	for _, in := range all(k.cache, k.cache.instances) {
		if !k.movable(in) {
			ids = append(ids, api.InstanceID(in.Meta.ID))
		}
	}
	return ids
}

// keep tells the fence who is bound to this node, if that has changed. It is
// called with every change, before anything of it is acted on or acknowledged:
// an instance starts as bound only when the fence knows it, and one that has
// become movable is not kept from the moment that its status says so.
func (k *fenceKeeper) keep(force bool) error {
	if k.o.Fence == nil || !k.cache.isSynced() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	ids := k.bound()
	if !force && reflect.DeepEqual(ids, k.kept) {
		return nil
	}
	if err := k.o.Fence.Keep(ids); err != nil {
		k.kept = nil // nobody knows what it has
		return err
	}
	k.kept = ids
	return nil
}

// Why a node starts nothing now.
const (
	waitsForLease  = "waiting for the node's lease"
	waitsForReturn = "waiting until the node has given up what is no longer its own"
)

// blocked returns why the instance must not start or go on now; empty: it may.
func (k *fenceKeeper) blocked(in api.Instance) string {
	if n, ok := k.cache.self(); ok && n.Assignment.Epoch > k.epoch.get() {
		return waitsForReturn
	}
	if k.movable(in) && !k.leased() {
		return waitsForLease
	}
	return ""
}

// confirm asks the store, not the cache, whether the instance is still this
// node's: a lease that was renewed a moment ago may come from after it was
// given to another.
func (k *fenceKeeper) confirm(ctx context.Context, in api.Instance) error {
	if err := k.refresh(ctx, api.KindInstance, in.Meta.ID); err != nil {
		return err
	}
	now, ok := get(k.cache, k.cache.instances, in.Meta.ID)
	if !ok || now.Assignment.Epoch != in.Assignment.Epoch || now.Assignment.Release || now.Meta.DeletedAt != nil {
		return errStale
	}
	if why := k.blocked(now); why != "" {
		return api.Errorf(api.CodeUnavailable, "%s", why)
	}
	return nil
}

// interrupted reports whether the run that is gone did not end by itself: the
// fence ended it, or the node lost it while it was on the move. The run's file
// keeps what was found out.
func (k *fenceKeeper) interrupted(in api.Instance, r runFile, s hypervisor.State) (bool, error) {
	id := api.InstanceID(in.Meta.ID)
	killed := s == hypervisor.Crashed || s == hypervisor.Missing
	switch {
	case r.Interrupted:
		return true, nil
	case s == hypervisor.Missing && !r.Since.IsZero(), // a move lost it, which is over (moving): a crash leaves the domain
		killed && k.movable(in) && !k.leased(): // nobody else would have
	case k.o.Fenced == nil || r.Since.IsZero():
		return false, nil
	default:
		fenced, err := k.o.Fenced(id, r.Since)
		if err != nil && k.movable(in) {
			return false, err // later: what cannot move it leaves alone
		}
		if err != nil || !fenced {
			return false, nil
		}
	}
	r.Interrupted = true
	return true, k.files.writeRun(id, r)
}
