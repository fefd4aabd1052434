package lease

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Peers calls other members; transport.Client implements it. in and out are JSON
// documents.
type Peers interface {
	Call(ctx context.Context, node api.NodeID, method, path string, in, out any) error
	// CallVia sends the call through the member via.
	CallVia(ctx context.Context, via, node api.NodeID, method, path string, in, out any) error
}

// ClientOptions are the options of a node's lease client.
type ClientOptions struct {
	Self   api.NodeID
	BootID string
	Epoch  int64 // status.observedEpoch: the last epoch for which the node has cleaned up
	Peers  Peers
	Leader interface{ LeaderID() api.NodeID }
	// Local answers the heartbeat when this node leads; it is Server.Heartbeat.
	Local func(context.Context, Heartbeat) Answer
	// Reports returns the opinions to send. Relays returns the members that may
	// relay, the most promising first. Prober implements both.
	Reports func() []PathReport
	Relays  func() []api.NodeID
	// OnLease is called with each new deadline (for basalt-fence); 0 ends the lease
	// at once. OnRefused is called after every heartbeat until Adopt, when the
	// cluster has a newer epoch: the node must clean up and then call Adopt. Both
	// must return quickly.
	OnLease   func(until Instant, epoch int64)
	OnRefused func(epoch int64)
	Now       func() Instant // nil: the boot clock
}

const (
	// tryLimit is the time limit of a heartbeat. Its attempts on several paths
	// overlap, and the first answer is used.
	tryLimit = 4 * time.Second
	// hedge is how long an attempt has to answer before the next path is tried.
	hedge = 600 * time.Millisecond
	// retry is the pause after a heartbeat that brought no lease.
	retry = 500 * time.Millisecond
	// maxRelays is how many relays are tried for one heartbeat.
	maxRelays = 3
)

// Client renews the node's lease.
type Client struct {
	o    ClientOptions
	wake chan struct{}

	mu     sync.Mutex // guards what follows
	holder *Holder
	last   Answer // its Reason explains to users why there is no lease
	err    error
	good   api.NodeID // the relay that worked last; "" if the leader was reached directly
}

// NewClient returns the lease client of a node. Run starts it.
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

// Valid reports whether the lease is valid for at least margin from now. It is
// checked before a movable instance is started or resumed.
func (c *Client) Valid(margin time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holder.Valid(c.o.Now(), margin)
}

// ClientState is the state of the lease in a Client.
type ClientState struct {
	Epoch   int64
	Until   Instant // 0 without a lease
	Valid   bool
	Refused int64 // the epoch that the node must adopt; 0 if it was not refused
	Why     string
}

// State returns the state of the lease, for the status and for users.
func (c *Client) State() ClientState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ClientState{Epoch: c.holder.Epoch(), Until: c.holder.Until(), Valid: c.holder.Valid(c.o.Now(), 0), Refused: c.holder.Refused()}
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

// Adopt switches to an epoch. Everything of an older epoch must have been
// destroyed.
func (c *Client) Adopt(epoch int64) {
	c.mu.Lock()
	c.holder.Adopt(epoch)
	c.mu.Unlock()
	c.SendNow()
}

// SendNow sends a heartbeat now, because the leader has changed.
func (c *Client) SendNow() {
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
		if c.heartbeat(ctx) {
			wait = max(Every-c.o.Now().Sub(start), retry)
		}
		timer.Reset(wait)
	}
}

// heartbeat sends one heartbeat and reports whether the answer is final for now: a lease
// or a refusal.
func (c *Client) heartbeat(ctx context.Context) bool {
	c.mu.Lock()
	q := c.holder.Sent(c.o.Now())
	good := c.good
	c.mu.Unlock()
	h := Heartbeat{V: wireVersion, Node: c.o.Self, Epoch: q.Epoch, BootID: c.o.BootID, SentAt: q.Sent}
	if c.o.Reports != nil {
		h.Sees = c.o.Reports()
	}
	a, via, err := c.request(ctx, good, h)

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

// request sends the heartbeat to the leader on each available path, starting them one
// after the other, until one answers.
func (c *Client) request(ctx context.Context, good api.NodeID, h Heartbeat) (a Answer, via api.NodeID, err error) {
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
			next.Reset(0) // start the next path at once after a failure
		case <-ctx.Done():
			return a, "", errors.Join(append(errs, ctx.Err())...)
		}
	}
	return a, "", errors.Join(errs...)
}

// ways returns the paths to the leader: directly (""), or through a relay. The one
// that worked last is first.
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
