package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api/server/auth"
)

// whileHolds is a context that ends when the caller's key or session does, for
// what lasts. since is a revision from before it was found good.
func (s *Server) whileHolds(ctx context.Context, id auth.Identity, since int64) (context.Context, context.CancelFunc, error) {
	ctx, cancel := s.untilExpiry(ctx, id)
	events, err := s.opts.Store.Watch(ctx, since)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	go func() {
		defer cancel() // also when the store ends the watch: better no stream than one that nobody ends
		for e := range events {
			if id.Ended(e) {
				return
			}
		}
	}()
	return ctx, cancel, nil
}

// untilExpiry is a context that ends when the caller's key or session is over.
func (s *Server) untilExpiry(ctx context.Context, id auth.Identity) (context.Context, context.CancelFunc) {
	if id.ExpiresAt == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, id.ExpiresAt.Sub(s.opts.Now()))
}
