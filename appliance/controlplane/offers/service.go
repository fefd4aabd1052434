package offers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// Prices returns the prices by which an organization pays for an hour; without an
// organization those of the price book named default.
type Prices interface {
	PricesOf(ctx context.Context, org api.OrganizationID, hour time.Time) (pricebook.Schedule, error)
}

const (
	// maxAge is how old an answer may be.
	maxAge = time.Second
	// maxPages is how many pages are cached; beyond it all are dropped.
	maxPages = 256
)

// Service implements server.Offers over a node's watch cache. It computes for one caller
// at a time and caches the results for a second, or until an object changes.
type Service struct {
	changes    *watchcache.Subscription
	prices     Prices
	networking bool
	watched    bool
	now        func() time.Time

	mu    sync.Mutex // guards the fields below
	at    time.Time  // when the snapshot was taken
	last  *snapshot  // nil if there is none yet
	pages map[api.OfferQuery]api.OfferList
}

// Options configure a Service.
type Options struct {
	Cache      *watchcache.Cache // has plan.Kinds
	Prices     Prices
	Networking bool             // new instances are in a network
	Watched    bool             // the leader monitors the nodes, and their objects have states
	Now        func() time.Time // nil means time.Now
}

// New returns a Service, which must be closed.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{changes: o.Cache.Subscribe(plan.Kinds), prices: o.Prices, networking: o.Networking, watched: o.Watched, now: o.Now}
}

// Close ends the Service's subscription.
func (svc *Service) Close() { svc.changes.Close() }

// Offers returns one page. The query must be valid and its limit positive. The list is
// read-only. Errors are *api.Error: CodeUnavailable while the objects have not arrived
// yet.
func (svc *Service) Offers(ctx context.Context, q api.OfferQuery) (api.OfferList, error) {
	svc.mu.Lock()
	defer svc.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return api.OfferList{}, err
	}
	now := svc.now()
	if err := svc.refresh(now); err != nil {
		return api.OfferList{}, err
	}
	if l, ok := svc.pages[q]; ok {
		return l, nil
	}
	prices, err := svc.prices.PricesOf(ctx, q.Organization, now.UTC().Truncate(time.Hour))
	if err != nil {
		return api.OfferList{}, fmt.Errorf("read the prices of organization %s: %w", q.Organization, err)
	}
	l, err := svc.last.list(q, prices, now)
	if err != nil {
		return api.OfferList{}, err
	}
	if len(svc.pages) >= maxPages {
		clear(svc.pages)
	}
	svc.pages[q] = l
	return l, nil
}

// refresh takes a new snapshot if something has changed or the last one is too old.
func (svc *Service) refresh(now time.Time) error {
	changed := false
	select {
	case <-svc.changes.Ready():
		changed = true
	default:
	}
	age := now.Sub(svc.at)
	if svc.last != nil && !changed && age >= 0 && age < maxAge {
		return nil
	}
	all := svc.changes.View()
	if all == nil {
		return api.Errorf(api.CodeUnavailable, "this node does not know the cluster's objects yet").WithHint("ask again")
	}
	s := plan.StateOf(all)
	if svc.watched {
		s.Health = map[string]plan.Health{}
	}
	svc.last, svc.at, svc.pages = snapshotOf(s, svc.networking, now), now, map[api.OfferQuery]api.OfferList{}
	return nil
}
