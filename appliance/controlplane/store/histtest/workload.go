package histtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Target is a store as clients access it.
type Target interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Workload is a group of clients that write and read a few objects as fast as they are
// answered.
type Workload struct {
	Seed    uint64
	Clients int
	Objects int // few, so that the clients conflict
	Kind    api.Kind
	Targets func() Target // returns a node for each operation, or nil if there is none now
	Timeout time.Duration // of one operation
}

// Run records what the clients do until ctx ends.
func (w Workload) Run(ctx context.Context, r *Recorder) {
	var all sync.WaitGroup
	var values atomic.Int64
	for c := range w.Clients {
		all.Go(func() {
			k := client{w: w, r: r, number: c, random: rand.New(rand.NewPCG(w.Seed, uint64(c))), values: &values, seen: map[string]int64{}}
			for ctx.Err() == nil {
				k.one()
			}
		})
	}
	all.Wait()
}

type client struct {
	w      Workload
	r      *Recorder
	number int
	random *rand.Rand
	values *atomic.Int64
	seen   map[string]int64 // the last revision of an object that this client observed
}

// one runs one operation. It is completed even if the workload ends meanwhile.
func (k *client) one() {
	target := k.w.Targets()
	if target == nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.w.Timeout)
	defer cancel()
	id := fmt.Sprintf("reg-%d", k.random.IntN(k.w.Objects))
	var err error
	switch n := k.random.IntN(100); {
	case n < 35:
		err = k.get(ctx, target, id)
	case n < 45:
		err = k.list(ctx, target)
	case n < 92 && k.seen[id] > 0:
		err = k.write(ctx, target, Op{Kind: Update, Object: id, Expect: k.seen[id]})
	case n < 96 || k.seen[id] == 0:
		err = k.write(ctx, target, Op{Kind: Create, Object: id})
	default:
		err = k.write(ctx, target, Op{Kind: Delete, Object: id, Expect: api.AnyRevision})
	}
	if err != nil && api.CodeOf(err) == api.CodeUnavailable {
		time.Sleep(time.Duration(k.random.IntN(50)) * time.Millisecond)
	}
}

func (k *client) get(ctx context.Context, target Target, id string) error {
	p := k.r.Call(k.number, Op{Kind: Get, Object: id})
	o, err := target.Get(ctx, k.w.Kind, id)
	if err != nil {
		p.Fail(err)
		return err
	}
	k.seen[id] = o.Meta.Revision
	p.Return(Result{Version: version(o)})
	return nil
}

func (k *client) list(ctx context.Context, target Target) error {
	p := k.r.Call(k.number, Op{Kind: List})
	page, err := target.List(ctx, api.ListQuery{Kind: k.w.Kind, Limit: 1000})
	if err != nil {
		p.Fail(err)
		return err
	}
	items := map[string]Version{}
	for _, o := range page.Items {
		items[o.Meta.ID] = version(o)
	}
	p.Return(Result{Items: items, Store: page.Revision})
	return nil
}

// write gives half of its batches an ID, so that they are retried.
func (k *client) write(ctx context.Context, target Target, op Op) error {
	n := k.values.Add(1)
	c := api.Command{Op: api.OpPutSpec, Kind: k.w.Kind, ID: op.Object, Expect: op.Expect}
	if op.Kind == Delete {
		c.Op = api.OpDelete
	} else {
		op.Value = fmt.Sprintf(`{"vcpus":%d,"memoryBytes":1073741824}`, n)
		c.Name, c.Data = op.Object, json.RawMessage(op.Value)
	}
	b := api.Batch{Commands: []api.Command{c}}
	if n%2 == 0 {
		b.ID = fmt.Sprintf("hist-%d-%d", k.w.Seed, n)
	}
	p := k.r.Call(k.number, op)
	out, err := target.Apply(ctx, b)
	if err != nil {
		p.Fail(err)
		delete(k.seen, op.Object)
		return err
	}
	if op.Kind == Delete {
		delete(k.seen, op.Object)
		p.Return(Result{})
		return nil
	}
	k.seen[op.Object] = out[0].Meta.Revision
	p.Return(Result{Version: Version{Revision: out[0].Meta.Revision}})
	return nil
}

func version(o api.Object) Version {
	return Version{Revision: o.Meta.Revision, Value: string(o.Spec)}
}
