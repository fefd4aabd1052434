package memstore

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Touched returns the organizations with changes since a mark.
func (m *Store) Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error) {
	m.mu.Lock() // waits until a running batch is applied
	defer m.mu.Unlock()
	return m.touches.Since(since, kinds...), ctx.Err()
}
