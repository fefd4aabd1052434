package memstore

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Touched returns who was touched since a mark.
func (m *Store) Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error) {
	m.mu.Lock() // until a batch is through
	defer m.mu.Unlock()
	return m.touches.Since(since, kinds...), ctx.Err()
}
