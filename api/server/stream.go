package server

import (
	"context"
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
