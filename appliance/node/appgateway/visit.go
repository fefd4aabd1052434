package appgateway

import (
	"context"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Access is what a client may access.
type Access struct {
	Instance api.InstanceID
	Name     string     // the instance's name
	Node     api.NodeID // the node that runs it
	Ticket   any        // for the Directory's own use
}

// Directory decides who may access what. Errors are *api.Error and are shown to the
// client.
type Directory interface {
	// Admit returns what the holder of a pass, a session or an API key, may access.
	Admit(ctx context.Context, holder string, to api.InstanceID, from string) (Access, error)
	// AdmitToken does the same for an API key's token.
	AdmitToken(ctx context.Context, token string, to api.InstanceID, from string) (Access, error)
	// While returns a context that ends when the right ends.
	While(ctx context.Context, a Access) (context.Context, context.CancelFunc, error)
	// Entered records that a visit begins.
	Entered(ctx context.Context, a Access, from string) error
}

// visitKey identifies a visit: instance, credential and client address, because the
// networks that a key is valid for are checked when a visit begins.
type visitKey struct {
	instance    api.InstanceID
	shown, from string // a holder's ID, or the hash of a token
}

// visit is what the Directory has admitted once, for all requests that follow.
type visit struct {
	ready  chan struct{} // closed when the following fields are set
	access Access
	err    error
	ctx    context.Context // ends with the right
	end    context.CancelFunc

	open int         // open requests; guarded by visits.mu
	idle *time.Timer // ends the visit; nil until it first has no request; guarded by visits.mu
}

// ended reports whether the right to a visit has ended; it is not known while the visit begins.
func (x *visit) ended() bool {
	select {
	case <-x.ready:
		return x.err == nil && x.ctx.Err() != nil
	default:
		return false
	}
}

// visits are the visits of this node.
type visits struct {
	ctx    context.Context // of the gateway
	limits limits

	mu   sync.Mutex // guards the following fields
	all  map[visitKey]*visit
	held map[string]int // number of visits by credential
}

func newVisits(ctx context.Context, l limits) *visits {
	return &visits{ctx: ctx, limits: l, all: map[visitKey]*visit{}, held: map[string]int{}}
}

// enter returns the visit that a request belongs to, and a function to call when
// the request ends. A new visit begins with admit, whose context is the gateway's.
func (v *visits) enter(key visitKey, admit func(context.Context) (Access, context.Context, context.CancelFunc, error)) (*visit, func(), error) {
	x, first, err := v.join(key)
	if err != nil {
		return nil, nil, err
	}
	leave := sync.OnceFunc(func() { v.leave(key, x) })
	if first {
		if x.access, x.ctx, x.end, x.err = admit(v.ctx); x.err == nil {
			context.AfterFunc(x.ctx, func() { v.forget(key, x) })
		} else {
			v.forget(key, x)
		}
		close(x.ready)
	}
	if <-x.ready; x.err != nil {
		leave()
		return nil, nil, x.err
	}
	return x, leave, nil
}

// join counts a request of a visit, which is created if there is none.
func (v *visits) join(key visitKey) (x *visit, first bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	x = v.all[key]
	if x != nil && x.ended() {
		v.remove(key, x)
		x = nil
	}
	switch {
	case x != nil && x.open >= v.limits.ofVisit:
		return nil, false, api.Errorf(api.CodeQuota, "%d requests to this instance are open, which is the limit", x.open)
	case x != nil:
		if x.idle != nil {
			x.idle.Stop()
		}
		x.open++
		return x, false, nil
	case len(v.all) >= v.limits.visits || v.held[key.shown] >= v.limits.ofHolder:
		return nil, false, api.Errorf(api.CodeQuota, "too many instances are visited at a time").WithHint("close some, and try again in a few minutes")
	}
	x = &visit{ready: make(chan struct{}), open: 1}
	v.all[key] = x
	v.held[key.shown]++
	return x, true, nil
}

func (v *visits) leave(key visitKey, x *visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x.open--; x.open == 0 && x.err == nil && v.all[key] == x {
		x.idle = time.AfterFunc(v.limits.visitIdle, func() { v.expire(key, x) })
	}
}

// expire ends a visit unless a request has arrived meanwhile.
func (v *visits) expire(key visitKey, x *visit) {
	v.mu.Lock()
	over := x.open == 0
	if over {
		v.remove(key, x)
	}
	v.mu.Unlock()
	if over {
		x.end()
	}
}

func (v *visits) forget(key visitKey, x *visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remove(key, x)
}

func (v *visits) remove(key visitKey, x *visit) {
	if v.all[key] != x {
		return
	}
	delete(v.all, key)
	if v.held[key.shown]--; v.held[key.shown] == 0 {
		delete(v.held, key.shown)
	}
}
