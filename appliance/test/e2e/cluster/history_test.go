package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/histtest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
)

// history is a set of API clients at work on all nodes. They use organizations as registers: an
// organization is created by the first client, and its display name is replaced by any client
// that sends its current revision.
type history struct {
	c        *cluster
	recorder *histtest.Recorder
	prefix   string
	stop     context.CancelFunc
	all      sync.WaitGroup
	values   atomic.Int64
	excuse   sync.Once

	mu      sync.Mutex
	created map[string]bool // acknowledged creates with an idempotency key
	longest time.Duration   // between two acknowledged writes
	last    time.Time
	over    bool // the clients have ended
}

const (
	historyClients = 6
	fewest         = 50 // the least operations for a meaningful history
	registers      = 4
)

// record starts the clients.
func (c *cluster) record(story string) *history {
	ctx, stop := context.WithCancel(c.ctx)
	h := &history{c: c, recorder: histtest.New(), prefix: story + "-", stop: stop, created: map[string]bool{}, last: time.Now()}
	h.recorder.Drawings = c.t.TempDir()
	failed.Keep(c.t, func(f failed.Folder) { f.Files(h.recorder.Drawings + "/*.html") })
	for i := range historyClients {
		one := c.clientWith(-1, i%3+1)
		any := c.client(i%3+1, (i+1)%3+1, (i+2)%3+1)
		k := &historian{history: h, number: i, one: one, any: any, random: rand.New(rand.NewPCG(1, uint64(i))), seen: map[string]api.Organization{}}
		h.all.Go(func() {
			for ctx.Err() == nil {
				k.step()
				time.Sleep(time.Duration(k.random.IntN(60)) * time.Millisecond)
			}
		})
	}
	return h
}

// end ends the clients.
func (h *history) end() {
	h.stop()
	h.all.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}

// check ends the clients and checks that the answers they received are linearizable.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.end()
	found := map[string]int{}
	for o, err := range client.Of[api.Organization](h.c.op()).All(h.c.ctx, client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[o.Meta.Name]++
	}
	for name := range h.created {
		if found[name] != 1 {
			t.Errorf("acknowledged organization %s exists %d times, want once", name, found[name])
		}
	}
	for name, n := range found {
		if n > 1 {
			t.Errorf("organization %s exists %d times, want once", name, n)
		}
	}
	h.recorder.Check(t)
	done, refused, open := h.recorder.Counts()
	t.Logf("history: %d done, %d refused, %d with unknown outcome; %d creates with an idempotency key; longest time without an acknowledged write %v",
		done, refused, open, len(h.created), h.longest.Round(time.Millisecond))
	if done < fewest {
		t.Errorf("history has %d completed operations, want at least %d", done, fewest)
	}
}

// stalled reports whether no write was acknowledged by any node for so long that the leases of
// healthy nodes may have expired, which requires their instances to stop. Tests that expect
// instances to continue assume that the cluster was not stalled, which happens when the test
// machine is busy for ten seconds.
func (h *history) stalled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest := max(h.longest, time.Since(h.last))
	if h.over {
		longest = h.longest
	}
	return longest > lease.TTL-lease.Every
}

// excused is like stalled, and logs once that the cluster stalled.
func (h *history) excused() bool {
	if !h.stalled() {
		return false
	}
	h.excuse.Do(func() {
		h.c.t.Logf("no write was acknowledged for longer than %v: instances on healthy nodes may have had to stop", lease.TTL-lease.Every)
	})
	return true
}

// busy waits until the clients have completed that many operations.
func (h *history) busy(c *cluster, operations int) {
	c.t.Helper()
	c.until(time.Minute, "clients at work", func() bool { done, _, _ := h.recorder.Counts(); return done >= operations })
}

func (h *history) recordWrite() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.longest = max(h.longest, now.Sub(h.last))
	h.last = now
}

// historian is one client.
type historian struct {
	*history
	number   int
	one, any *client.API // one uses one node without retries, any uses every node with retries
	random   *rand.Rand
	failed   bool // the last operation had no answer, or one with an unknown outcome
	seen     map[string]api.Organization
}

func (k *historian) step() {
	ctx, cancel := context.WithTimeout(k.c.ctx, 5*time.Second)
	defer cancel()
	if k.failed { // operations with an unknown outcome make the check slow
		time.Sleep(300 * time.Millisecond)
		k.failed = false
	}
	id := fmt.Sprintf("%sreg-%d", k.prefix, k.random.IntN(registers))
	switch n := k.random.IntN(100); {
	case n < 30:
		k.get(ctx, id)
	case n < 40:
		k.list(ctx)
	case n < 50:
		k.keyed(ctx)
	case k.seen[id].Meta.Revision == 0:
		k.create(ctx, id)
	default:
		k.update(ctx, id)
	}
}

func (k *historian) fail(p *histtest.Pending, err error) {
	p.Fail(err)
	switch api.CodeOf(err) {
	case api.CodeExists, api.CodeConflict, api.CodeNotFound:
	default:
		k.failed = true
	}
}

func (k *historian) value() string { return fmt.Sprintf("%s%d", k.prefix, k.values.Add(1)) }

func version(o api.Organization) histtest.Version {
	return histtest.Version{Revision: o.Meta.Revision, Value: o.Spec.DisplayName}
}

func (k *historian) get(ctx context.Context, id string) {
	p := k.recorder.Call(k.number, histtest.Op{Kind: histtest.Get, Object: id})
	o, err := client.Of[api.Organization](k.one).Get(ctx, id, client.Query{})
	if err != nil {
		k.fail(p, err)
		return
	}
	k.seen[id] = o
	p.Return(histtest.Result{Version: version(o)})
}

func (k *historian) list(ctx context.Context) {
	p := k.recorder.Call(k.number, histtest.Op{Kind: histtest.List})
	page, err := client.Of[api.Organization](k.one).Page(ctx, client.Query{Limit: 1000})
	if err != nil {
		k.fail(p, err)
		return
	}
	items := map[string]histtest.Version{}
	for r := range registers {
		id := fmt.Sprintf("%sreg-%d", k.prefix, r)
		for _, o := range page.Items {
			if o.Meta.Name == id {
				items[id] = version(o)
			}
		}
	}
	if page.Continue == "" {
		p.Return(histtest.Result{Items: items, Store: page.Revision})
	}
}

func (k *historian) create(ctx context.Context, id string) {
	value := k.value()
	p := k.recorder.Call(k.number, histtest.Op{Kind: histtest.Create, Object: id, Value: value})
	o, err := client.Of[api.Organization](k.one).Create(ctx, api.Organization{Meta: api.Meta{Name: id}, Spec: api.OrganizationSpec{DisplayName: value}})
	if err != nil {
		k.fail(p, err)
		return
	}
	k.seen[id] = o
	p.Return(histtest.Result{Version: version(o)})
	k.recordWrite()
}

func (k *historian) update(ctx context.Context, id string) {
	o := k.seen[id]
	o.Spec.DisplayName = k.value()
	p := k.recorder.Call(k.number, histtest.Op{Kind: histtest.Update, Object: id, Expect: o.Meta.Revision, Value: o.Spec.DisplayName})
	o, err := client.Of[api.Organization](k.one).Update(ctx, o.Meta.ID, o)
	if err != nil {
		k.fail(p, err)
		delete(k.seen, id)
		return
	}
	k.seen[id] = o
	p.Return(histtest.Result{Version: version(o)})
	k.recordWrite()
}

// keyed creates an object of its own through any node, with retries under one idempotency key:
// it must exist exactly once, and an acknowledged one must persist.
func (k *historian) keyed(ctx context.Context) {
	name := k.value()
	_, err := client.Of[api.Organization](k.any).Create(ctx, api.Organization{Meta: api.Meta{Name: name}})
	switch {
	case err == nil:
		k.mu.Lock()
		k.created[name] = true
		k.mu.Unlock()
		k.recordWrite()
	case api.CodeOf(err) == api.CodeExists:
		k.c.t.Errorf("create of %s with an idempotency key failed, want the retry to be recognized: %v", name, err)
	}
}
