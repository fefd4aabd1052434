// Package memstore is a store of objects in memory: a fake for tests of what uses a
// store. It behaves as api/storetest specifies, and passes its suite.
package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of the store.
const (
	historyLen  = 2048 // changes over which a watch can resume
	rememberIDs = 1024 // batches
	maxList     = 1000
)

type key struct {
	kind api.Kind
	id   string
}

// Store is a store in memory.
type Store struct {
	mu       sync.Mutex // guards everything below
	objects  map[key]api.Object
	ids      map[api.Kind][]string // of the objects, sorted
	claims   map[string]key
	use      []owned                      // ordered by organization and use
	records  map[string][]api.UsageRecord // by organization, in their order
	horizon  time.Time                    // records that ended before it were removed
	revision int64
	history  []api.Event // the newest events, at least historyLen
	audit    []api.AuditEvent
	told     []api.WebhookEvent
	batches  map[string][]api.Object
	batchIDs []string // oldest first
	watchers map[*watcher]struct{}
	touches  api.Touches

	histories map[api.InstanceID][]api.InstanceEvent // oldest first
}

// New returns an empty store.
func New() *Store {
	return &Store{objects: map[key]api.Object{}, ids: map[api.Kind][]string{}, claims: map[string]key{}, records: map[string][]api.UsageRecord{}, histories: map[api.InstanceID][]api.InstanceEvent{}, batches: map[string][]api.Object{}, watchers: map[*watcher]struct{}{}}
}

// Apply applies all commands of a batch, or none.
func (m *Store) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	return m.batch(ctx, b, func(t *txn, results []api.Object) {
		asked := ""
		if b.Audit != nil {
			asked = b.Audit.Operation
		}
		m.recordEvents(t, asked)
		m.commit(t)
		m.appendAudit(b.Audit, t)
		if b.ID != "" {
			m.remember(b.ID, results)
		}
	})
}

// Try returns what Apply would return, and changes nothing.
func (m *Store) Try(ctx context.Context, b api.Batch) ([]api.Object, error) {
	return m.batch(ctx, b, func(*txn, []api.Object) {})
}

// batch decides a batch; finish is called with the result, unless the batch was applied
// before.
func (m *Store) batch(ctx context.Context, b api.Batch, finish func(*txn, []api.Object)) ([]api.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.At.IsZero() {
		b.At = time.Now()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if done, ok := m.batches[b.ID]; ok && b.ID != "" {
		return done, nil
	}
	t, results, err := m.decide(b)
	if err != nil {
		return nil, err
	}
	finish(t, results)
	return results, nil
}

// decide applies a batch on top of the store's content, which it does not modify.
func (m *Store) decide(b api.Batch) (*txn, []api.Object, error) {
	t := &txn{base: m.objects, changed: map[key]*api.Object{}, held: m.claims, claims: map[string]key{}, raised: map[int64]*api.CommandEvent{}, cascades: map[key]bool{}, revision: m.revision, at: b.At.UTC()}
	results := make([]api.Object, 0, len(b.Commands))
	for i, c := range b.Commands {
		before := t.revision
		o, err := t.apply(c)
		if c.Event != nil && t.revision != before {
			t.raised[t.revision] = c.Event
		}
		if err != nil {
			return nil, nil, fmt.Errorf("command %d of %d: %w", i+1, len(b.Commands), err)
		}
		results = append(results, o)
	}
	if err := m.checkUse(b.Commands); err != nil {
		return nil, nil, err
	}
	return t, results, t.references(b.Strict)
}

func (m *Store) commit(t *txn) {
	for _, e := range t.events {
		m.touches.Note(api.TouchOf(e.Object))
	}
	m.applyRecords(t)
	for k, o := range t.changed {
		i, known := slices.BinarySearch(m.ids[k.kind], k.id)
		switch {
		case o == nil && known:
			delete(m.objects, k)
			m.ids[k.kind] = slices.Delete(m.ids[k.kind], i, i+1)
		case o != nil && !known:
			m.ids[k.kind] = slices.Insert(m.ids[k.kind], i, k.id)
			fallthrough
		case o != nil:
			m.objects[k] = *o
		}
	}
	for name, k := range t.claims {
		if m.claims[name] = k; k == (key{}) {
			delete(m.claims, name)
		}
	}
	m.revision = t.revision
	m.history = append(m.history, t.events...)
	if over := len(m.history) - historyLen; over > historyLen { // rarely, since it copies
		m.history = slices.Clone(m.history[over:])
	}
	for w := range m.watchers {
		if !w.push(t.events) {
			delete(m.watchers, w)
		}
	}
}

func (m *Store) remember(id string, results []api.Object) {
	m.batches[id] = results
	m.batchIDs = append(m.batchIDs, id)
	if len(m.batchIDs) > rememberIDs {
		delete(m.batches, m.batchIDs[0])
		m.batchIDs = m.batchIDs[1:]
	}
}

// Get returns an object, or CodeNotFound.
func (m *Store) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	if err := ctx.Err(); err != nil {
		return api.Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key{kind, id}]
	if !ok {
		return api.Object{}, notFound(kind, id)
	}
	return o, nil
}

// List returns one page of a kind's objects.
func (m *Store) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	if err := ctx.Err(); err != nil {
		return api.ListPage{}, err
	}
	if q.Limit < 1 || q.Limit > maxList {
		return api.ListPage{}, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxList).At("limit")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	page := api.ListPage{Revision: m.revision}
	if q.InNames() {
		err := m.byName(&page, q)
		return page, err
	}
	ids := m.ids[q.Kind]
	from, _ := slices.BinarySearch(ids, q.Continue+"\x00") // the first ID after it
	for _, id := range ids[from:] {
		if !page.Take(q, m.objects[key{q.Kind, id}]) {
			break
		}
	}
	return page, nil
}

// byName fills the page in the order of names.
func (m *Store) byName(page *api.ListPage, q api.ListQuery) error {
	place, err := q.Place()
	if err != nil {
		return err
	}
	at := func(o api.Object) string {
		return strings.Join([]string{o.Meta.Name, o.Meta.Organization, o.Meta.Project, o.Meta.ID}, "\x00")
	}
	var rest []api.Object
	for _, id := range m.ids[q.Kind] {
		if o := m.objects[key{q.Kind, id}]; at(o) > place {
			rest = append(rest, o)
		}
	}
	slices.SortFunc(rest, func(a, b api.Object) int { return strings.Compare(at(a), at(b)) })
	for _, o := range rest {
		if !page.Take(q, o) {
			return nil
		}
	}
	return nil
}

// Revision returns the revision of the last change.
func (m *Store) Revision() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.revision
}

func notFound(kind api.Kind, id string) *api.Error {
	return api.Errorf(api.CodeNotFound, "%s %s does not exist", kind, id)
}
