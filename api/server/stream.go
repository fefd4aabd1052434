package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api/server/auth"
)

// whileHolds returns a context for a long-running operation that is canceled when the
// caller's key or session ends. since is a store revision from before the key was
// checked.
func (s *Server) whileHolds(ctx context.Context, id auth.Identity, since int64) (context.Context, context.CancelFunc, error) {
	ctx, cancel := s.untilExpiry(ctx, id)
	events, err := s.opts.Store.Watch(ctx, since)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("watch the rights of the caller: %w", err)
	}
	go func() {
		defer cancel() // also when the store ends the watch: without it, the stream could not be ended in time
		for e := range events {
			if id.Ended(e) {
				return
			}
		}
	}()
	return ctx, cancel, nil
}

// untilExpiry returns a context that ends when the caller's key or session expires.
func (s *Server) untilExpiry(ctx context.Context, id auth.Identity) (context.Context, context.CancelFunc) {
	if id.ExpiresAt == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, id.ExpiresAt.Sub(s.opts.Now()))
}
