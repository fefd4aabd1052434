package worker

import (
	"context"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// These bound the images that are compiled, and copied for that, at a time: each
// takes a share for every shareBytes or part of it, and waits until as many are
// free.
const (
	loadShares = 8
	shareBytes = 32 << 20
)

// loads bounds the modules that a session's driver compiles at a time.
type loads struct {
	shares chan struct{}
	turn   chan struct{} // held while shares are taken, since two images that take half each would deadlock
}

func newLoads() loads {
	return loads{shares: make(chan struct{}, loadShares), turn: make(chan struct{}, 1)}
}

func sharesOf(bytes uint64) int {
	return int(min(loadShares, 1+bytes/shareBytes))
}

// enter waits for room for an image of that many bytes, until ctx ends.
func (l loads) enter(ctx context.Context, bytes uint64) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return abi.ErrUnavailable
	}
	defer func() { <-l.turn }()
	for n := range sharesOf(bytes) {
		select {
		case l.shares <- struct{}{}:
		case <-ctx.Done():
			l.give(n)
			return abi.ErrUnavailable
		}
	}
	return nil
}

func (l loads) leave(bytes uint64) { l.give(sharesOf(bytes)) }

func (l loads) give(n int) {
	for range n {
		<-l.shares
	}
}
