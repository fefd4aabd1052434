package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/backup"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// backupMax bounds a backup: the tables' file cannot reuse pages during a long read.
const backupMax = 30 * time.Minute

// Backup writes a consistent copy of the tables with everything that was acknowledged
// before the call, while writes continue; with a Stale context, with what this node
// has. cluster is any JSON, up to 1 MiB: backup.ReadInfo and RestoreInto return it. w
// should not be slow: the tables' file grows meanwhile.
func (s *Store) Backup(ctx context.Context, w io.Writer, cluster json.RawMessage) error {
	if err := s.awaitCurrent(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, backupMax)
	defer cancel()
	v, end, err := s.tables.begin()
	if err != nil {
		return s.domainError(err)
	}
	defer end()
	info := backup.Info{Format: state.Level, MadeAt: time.Now().UTC().Round(0), MadeBy: s.options.NodeID, Cluster: cluster}
	err = s.tables.guard(func() (err error) {
		info.Revision = v.Revision()
		if info.Horizon, err = v.Horizon(); err != nil {
			return fmt.Errorf("begin the backup: %w", err)
		}
		return nil
	})
	if err != nil {
		return s.domainError(err)
	}
	if err := s.tables.guard(func() error { return backup.Write(ctx, w, v, info) }); err != nil {
		if ctx.Err() != nil {
			return canceled(ctx.Err())
		}
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}
