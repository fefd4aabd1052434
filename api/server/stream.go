package server

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// whileHolds is a context that ends when the caller's key or session does, for
// what lasts. since is a revision from before it was found good.
func (s *Server) whileHolds(ctx context.Context, id identity, since int64) (context.Context, context.CancelFunc, error) {
	ctx, cancel := s.untilExpiry(ctx, id)
	events, err := s.opts.Store.Watch(ctx, since)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	go func() {
		defer cancel() // also when the store ends the watch: better no stream than one that nobody ends
		for e := range events {
			if id.ended(e) {
				return
			}
		}
	}()
	return ctx, cancel, nil
}

// untilExpiry is a context that ends when the caller's key or session is over.
func (s *Server) untilExpiry(ctx context.Context, id identity) (context.Context, context.CancelFunc) {
	if id.expiresAt == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, id.expiresAt.Sub(s.opts.Now()))
}

// touchEvery is how often the use of a key or session is written down.
const touchEvery = time.Hour

// touch notes that a key or session is used, at most once an hour. It is not
// worth failing a request for, or much waiting.
func (s *Server) touch(ctx context.Context, id identity, now time.Time) {
	if id.usedAt != nil && now.Sub(*id.usedAt) < touchEvery || isStale(ctx) {
		return
	}
	if at, ok := s.touched.Load(id.id); ok && now.Sub(at.(time.Time)) < touchEvery/60 {
		return
	}
	s.touched.Store(id.id, now)
	at := now.UTC().Truncate(time.Second)
	var status any = api.APIKeyStatus{LastUsedAt: &at}
	if id.kind == api.KindSession {
		status = api.SessionStatus{UsedAt: &at}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := s.opts.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: []api.Command{
		{Op: api.OpReport, Kind: id.kind, ID: id.id, Expect: api.AnyRevision, Data: api.Encode(status)}}})
	if err != nil {
		s.opts.Log.Debug("the use of a key was not noted", "id", id.id, "error", err)
	}
}

type staleKey struct{}

// isStale reports whether the request asked for what this node knows: it may be
// cut off, and then a write only waits.
func isStale(ctx context.Context) bool { return ctx.Value(staleKey{}) != nil }
