package store

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Touched answers which organizations something of these kinds has changed of
// since an answer's mark, with all that was acknowledged before the call. Marks
// are this process's: 0 and those of another are answered with All.
func (s *Store) Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error) {
	if err := s.current(ctx); err != nil {
		return api.Touched{}, err
	}
	return s.tables.touches.Since(since, kinds...), nil
}

// touch notes a change, once the transaction is committed.
func (v view) touch(n api.TouchNote) {
	if v.group != nil {
		v.group.touched = append(v.group.touched, n)
	}
}
