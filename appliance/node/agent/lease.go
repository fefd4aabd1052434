package agent

import (
	"context"
	"reflect"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Lease says whether the cluster lets this node run what could run elsewhere.
type Lease interface{ Valid() bool }

// Fence kills instances when the node's lease ends.
type Fence interface {
	// Keep replaces the list of those that it must leave alone: they can run
	// nowhere else. What it does not know it kills.
	Keep(ids []api.InstanceID) error
}

func (a *Agent) leased() bool { return a.o.Lease == nil || a.o.Lease.Valid() }

// movable says whether the instance may be running elsewhere by now, as far as
// this node knows.
func (a *Agent) movable(in api.Instance) bool {
	root, ok := get(a.cache, a.cache.volumes, string(in.Assignment.RootVolume))
	return !ok || api.Movable(in, root)
}

// bound are the instances that can run here only. One whose root volume is not
// known is not among them: killed in vain is better than run twice.
func (a *Agent) bound() []api.InstanceID {
	ids := []api.InstanceID{}
	for _, in := range all(a.cache, a.cache.instances) {
		if !a.movable(in) {
			ids = append(ids, api.InstanceID(in.Meta.ID))
		}
	}
	return ids
}

// keep tells the fence who is bound to this node, if that has changed. It is
// called with every change, before anything of it is acted on or acknowledged:
// an instance starts as bound only when the fence knows it, and one that has
// become movable is not kept from the moment that its status says so.
func (a *Agent) keep(force bool) error {
	if a.o.Fence == nil || !a.cache.isSynced() {
		return nil
	}
	a.keepMu.Lock()
	defer a.keepMu.Unlock()
	ids := a.bound()
	if !force && reflect.DeepEqual(ids, a.kept) {
		return nil
	}
	if err := a.o.Fence.Keep(ids); err != nil {
		a.kept = nil // nobody knows what it has
		return err
	}
	a.kept = ids
	return nil
}

// Why a node starts nothing now.
const (
	waitsForLease  = "waiting for the node's lease"
	waitsForReturn = "waiting until the node has given up what is no longer its own"
)

// blocked says why the instance must not start or go on now; empty: it may.
func (a *Agent) blocked(in api.Instance) string {
	if n, ok := a.cache.self(); ok && n.Assignment.Epoch > a.epoch.get() {
		return waitsForReturn
	}
	if a.movable(in) && !a.leased() {
		return waitsForLease
	}
	return ""
}

// confirm asks the store, not the cache, whether the instance is still this
// node's: a lease that was renewed a moment ago may come from after it was
// given to another.
func (a *Agent) confirm(ctx context.Context, in api.Instance) error {
	if err := a.refresh(ctx, api.KindInstance, in.Meta.ID); err != nil {
		return err
	}
	now, ok := get(a.cache, a.cache.instances, in.Meta.ID)
	if !ok || now.Assignment.Epoch != in.Assignment.Epoch || now.Assignment.Release || now.Meta.DeletedAt != nil {
		return errStale
	}
	if why := a.blocked(now); why != "" {
		return api.Errorf(api.CodeUnavailable, "%s", why)
	}
	return nil
}

// interrupted says whether the run that is gone did not end by itself: the
// fence ended it, or the node lost it while it was on the move. The run's file
// keeps what was found out.
func (a *Agent) interrupted(in api.Instance, r runFile, s hypervisor.State) (bool, error) {
	id := api.InstanceID(in.Meta.ID)
	killed := s == hypervisor.Crashed || s == hypervisor.Missing
	switch {
	case r.Interrupted:
		return true, nil
	case s == hypervisor.Missing && !r.Since.IsZero(), // a move lost it, which is over (moving): a crash leaves the domain
		killed && a.movable(in) && !a.leased(): // nobody else would have
	case a.o.Fenced == nil || r.Since.IsZero():
		return false, nil
	default:
		fenced, err := a.o.Fenced(id, r.Since)
		if err != nil && a.movable(in) {
			return false, err // later: what cannot move it leaves alone
		}
		if err != nil || !fenced {
			return false, nil
		}
	}
	r.Interrupted = true
	return true, a.files.writeRun(id, r)
}
