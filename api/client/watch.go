package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// Change is a change of one object, or the end of a snapshot.
type Change[T any] struct {
	Type     api.EventType
	Revision int64
	Object   T // as it is after the change; for a removal, its last state; zero for EventSync
}

// Watch streams the changes of the collection's objects after revision since, over any
// number of connections, as API.Watch does. From revision 0, or from one that is too
// old, all objects are streamed first, and then a change of type EventSync: objects
// that were not streamed before it no longer exist. It ends with ctx, or with an error
// that retrying does not resolve.
func (c Collection[T]) Watch(ctx context.Context, since int64) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		for e, err := range c.a.Watch(ctx, since, c.kind.Kind) {
			change := Change[T]{Type: e.Type, Revision: e.Revision}
			if err == nil && e.Type != api.EventSync {
				change.Object, err = api.Decode[T](e.Object)
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}
