package lease

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Peers calls other members (transport.Client). in and out are JSON documents.
type Peers interface {
	Call(ctx context.Context, node api.NodeID, method, path string, in, out any) error
	// CallVia has a member pass the call on.
	CallVia(ctx context.Context, via, node api.NodeID, method, path string, in, out any) error
}

// ClientOptions of a node's lease client.
type ClientOptions struct {
	Self   api.NodeID
	BootID string
	Epoch  int64 // status.observedEpoch: the last that the node cleared up for
	Peers  Peers
	Leader interface{ LeaderID() api.NodeID }
	// Local answers when this node leads: Server.Heartbeat.
	Local func(context.Context, Heartbeat) Answer
	// Sights are the opinions to send, Relays the members that may relay,
	// likeliest first: Prober has both.
	Sights func() []Sight
	Relays func() []api.NodeID
	// OnLease hears each new deadline (for basalt-fence); 0 is the end of
	// the lease, now. OnRefused hears, with every heartbeat until Adopt, that
	// the cluster moved on: clear up, then Adopt. Neither may take long.
	OnLease   func(until Instant, epoch int64)
	OnRefused func(epoch int64)
	Now       func() Instant // nil: the boot clock
}

const (
	// One try of a heartbeat; several overlap, and the first answer counts.
	tryLimit = 4 * time.Second
	// The next way is tried when one has not answered for so long.
	hedge = 600 * time.Millisecond
	// After a heartbeat that brought no lease.
	retry = 500 * time.Millisecond
	// Relays asked for one heartbeat.
	maxRelays = 3
)

// Client keeps the node's lease.
type Client struct {
	o    ClientOptions
	wake chan struct{}

	mu     sync.Mutex // guards what follows
	holder *Holder
	last   Answer // for people: why there is no lease
	err    error
	good   api.NodeID // the relay that worked last; empty: none was needed
}

// NewClient of a node; Run starts it.
func NewClient(o ClientOptions) *Client {
	if o.Now == nil {
		o.Now = Now
	}
	if o.OnLease == nil {
		o.OnLease = func(Instant, int64) {}
	}
	if o.OnRefused == nil {
		o.OnRefused = func(int64) {}
	}
	return &Client{o: o, wake: make(chan struct{}, 1), holder: NewHolder(o.Epoch)}
}

// Valid reports whether the lease holds for margin from now: asked before a
// movable instance is started or resumed.
func (c *Client) Valid(margin time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder.Valid(c.o.Now(), margin)
}

// Held is the lease as a Client knows it.
type Held struct {
	Epoch   int64
	Until   Instant // 0: no lease
	Valid   bool
	Refused int64 // 0: no
	Why     string
}

// State of the lease, for people and status.
func (c *Client) State() Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Held{Epoch: c.holder.Epoch(), Until: c.holder.Until(), Valid: c.holder.Valid(c.o.Now(), 0), Refused: c.holder.Refused()}
	switch {
	case s.Valid:
		s.Why = "the lease is valid"
	case c.err != nil:
		s.Why = "no response from the leader: " + c.err.Error()
	case c.last.Reason != "":
		s.Why = c.last.Reason
	default:
		s.Why = "no heartbeat has been answered yet"
	}
	return s
}

// Adopt takes on an epoch when everything of an older one is destroyed.
func (c *Client) Adopt(epoch int64) {
	c.mu.Lock()
	c.holder.Adopt(epoch)
	c.mu.Unlock()
	c.Kick()
}

// Kick sends a heartbeat now: the leader changed.
func (c *Client) Kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run sends heartbeats until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-c.wake:
		}
		start := c.o.Now()
		wait := retry
		if c.beat(ctx) {
			wait = max(Every-c.o.Now().Sub(start), retry)
		}
		timer.Reset(wait)
	}
}

// beat sends one heartbeat and reports whether it brought an answer that will not
// be another in a moment.
func (c *Client) beat(ctx context.Context) bool {
	c.mu.Lock()
	q := c.holder.Sent(c.o.Now())
	good := c.good
	c.mu.Unlock()
	h := Heartbeat{V: wireVersion, Node: c.o.Self, Epoch: q.Epoch, BootID: c.o.BootID, SentAt: q.Sent}
	if c.o.Sights != nil {
		h.Sees = c.o.Sights()
	}
	a, via, err := c.ask(ctx, good, h)

	c.mu.Lock()
	c.err = err
	if err != nil {
		c.mu.Unlock()
		return false
	}
	c.last, c.good = a, via
	changed := c.holder.Answered(q, a)
	until, epoch, refused := c.holder.Until(), c.holder.Epoch(), c.holder.Refused()
	c.mu.Unlock()
	if changed {
		c.o.OnLease(until, epoch)
	}
	if refused > 0 {
		c.o.OnRefused(refused)
	}
	return a.Granted || a.Refused > 0
}

var errNoLeader = errors.New("no leader is known")

// ask the leader on the ways there are, each a little after the one before it,
// until one answers.
func (c *Client) ask(ctx context.Context, good api.NodeID, h Heartbeat) (a Answer, via api.NodeID, err error) {
	leader := c.o.Leader.LeaderID()
	switch leader {
	case "":
		return a, "", errNoLeader
	case c.o.Self:
		ctx, cancel := context.WithTimeout(ctx, tryLimit)
		defer cancel()
		if a = c.o.Local(ctx, h); a.NotLeader {
			return a, "", errors.New(a.Reason)
		}
		return a, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	type result struct {
		a   Answer
		via api.NodeID
		err error
	}
	ways := c.ways(leader, good)
	results := make(chan result, len(ways))
	start := func(via api.NodeID) {
		r := result{via: via}
		if via == "" {
			r.err = c.o.Peers.Call(ctx, leader, http.MethodPost, HeartbeatPath, h, &r.a)
		} else {
			r.err = c.o.Peers.CallVia(ctx, via, leader, http.MethodPost, HeartbeatPath, h, &r.a)
		}
		if r.err == nil && r.a.NotLeader {
			r.err = errors.New(r.a.Reason)
		}
		results <- r
	}
	next := time.NewTimer(0)
	defer next.Stop()
	var errs []error
	for begun, ended := 0, 0; ended < len(ways); {
		select {
		case <-next.C:
			if begun < len(ways) {
				go start(ways[begun])
				begun++
				next.Reset(hedge)
			}
		case r := <-results:
			if r.err == nil {
				return r.a, r.via, nil
			}
			ended++
			errs = append(errs, r.err)
			next.Reset(0) // do not wait for what has failed
		case <-ctx.Done():
			return a, "", errors.Join(append(errs, ctx.Err())...)
		}
	}
	return a, "", errors.Join(errs...)
}

// ways to the leader: directly (""), or by relays. What worked last comes first.
func (c *Client) ways(leader, good api.NodeID) []api.NodeID {
	var relays []api.NodeID
	if c.o.Relays != nil {
		relays = c.o.Relays()
	}
	ways := []api.NodeID{""}
	if good != "" {
		ways = []api.NodeID{good, ""}
	}
	for _, r := range relays {
		if len(ways) > maxRelays {
			break
		}
		if r != leader && r != c.o.Self && r != good {
			ways = append(ways, r)
		}
	}
	return ways
}
