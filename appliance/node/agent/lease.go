package agent

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Lease reports whether the cluster allows this node to run instances that could
// run elsewhere.
type Lease interface{ Valid() bool }

// Fence kills instances when the node's lease ends.
type Fence interface {
	// Keep replaces the list of instances that the fence must not kill, because
	// they can run nowhere else. It kills every other instance.
	Keep(ids []api.InstanceID) error
}

// fenceKeeper decides by the node's lease what may run on this node, and sends the
// list of instances to keep to the fence.
type fenceKeeper struct {
	*core
	epoch *observedEpoch

	mu   sync.Mutex
	kept []api.InstanceID // the fence's list; nil if unknown
}

func (k *fenceKeeper) leased() bool { return k.o.Lease == nil || k.o.Lease.Valid() }

// movable reports whether the instance may be running elsewhere by now, as far as
// this node knows. The node may store the state of a TPM at any time, so whether it
// has done so does not matter here.
func (k *fenceKeeper) movable(in api.Instance) bool {
	root, ok := get(k.cache, k.cache.volumes, string(in.Assignment.RootVolume))
	return !ok || api.MayBecomeMovable(in, root)
}

// bound returns the instances that can run on this node only. One whose root volume
// is unknown is not included: killing it needlessly is better than running it
// twice.
func (k *fenceKeeper) bound() []api.InstanceID {
	ids := []api.InstanceID{}
	for _, in := range all(k.cache, k.cache.instances) {
		if !k.movable(in) {
			ids = append(ids, api.InstanceID(in.Meta.ID))
		}
	}
	return ids
}

// keep sends the list of bound instances to the fence if it has changed, or if
// force is set. It is called with every change, before the change is acted on or
// acknowledged: an instance starts as bound only when the fence has it in its list,
// and one that has become movable is off the list before its status reports so.
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
		k.kept = nil // the fence's list is unknown now
		return fmt.Errorf("report instances to keep to basalt-fence: %w", err)
	}
	k.kept = ids
	return nil
}

// Reasons why a node starts nothing now.
var (
	waitsForLease  = plainly(api.CauseAwaitingLease, "waiting for the node's lease")
	waitsForReturn = plainly(api.CauseAwaitingLease, "waiting until the node has given up what is no longer its own")
)

// blocked returns why the instance must not start or resume now, or none if it may.
func (k *fenceKeeper) blocked(in api.Instance) (none api.Reason) {
	if n, ok := k.cache.self(); ok && n.Assignment.Epoch > k.epoch.get() {
		return waitsForReturn
	}
	if k.movable(in) && !k.leased() {
		return waitsForLease
	}
	return none
}

// confirm checks with the store, not the cache, that the instance is still this
// node's: a lease that was just renewed may be from after the instance was assigned
// to another node.
func (k *fenceKeeper) confirm(ctx context.Context, in api.Instance) error {
	if err := k.refresh(ctx, api.KindInstance, in.Meta.ID); err != nil {
		return err
	}
	now, ok := get(k.cache, k.cache.instances, in.Meta.ID)
	if !ok || now.Assignment.Epoch != in.Assignment.Epoch || now.Assignment.Release || now.Meta.DeletedAt != nil {
		return errStale
	}
	if why := k.blocked(now); why.Text != "" {
		return api.Errorf(api.CodeUnavailable, "%s", why.Text).Because(why.Cause, "")
	}
	return nil
}

// interrupted reports whether the last run did not end by itself: the fence ended
// it, or it was lost during a migration. The result is stored in the run's file.
func (k *fenceKeeper) interrupted(in api.Instance, r runFile, s hypervisor.State) (bool, error) {
	id := api.InstanceID(in.Meta.ID)
	killed := s == hypervisor.Crashed || s == hypervisor.Missing
	switch {
	case r.Interrupted:
		return true, nil
	case s == hypervisor.Missing && !r.Since.IsZero(), // lost by a migration that has ended (moving): a crash leaves the domain
		killed && k.movable(in) && !k.leased(): // by the fence: nothing else would have
	case k.o.Fenced == nil || r.Since.IsZero():
		return false, nil
	default:
		fenced, err := k.o.Fenced(id, r.Since)
		if err != nil && k.movable(in) {
			return false, err // decided later; the fence leaves alone what cannot run elsewhere
		}
		if err != nil || !fenced {
			return false, nil
		}
	}
	r.Interrupted = true
	return true, k.files.writeRun(id, r)
}
