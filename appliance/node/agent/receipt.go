package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// A receipt records which volumes of a migration have arrived on this node. That of a
// stopped instance is in the file of its run, which is removed with whatever else the
// node has of the instance. That of a volume is a file of its own, which is removed when
// the migration has ended: the copy is then the volume, or belongs to another node.

func (f *instanceFiles) receipts() string { return filepath.Join(f.o.DataDir, "receipts") }

func (f *instanceFiles) receiptPath(id api.VolumeID) string {
	return filepath.Join(f.receipts(), string(id)+".json")
}

// readReceipt returns the receipt for the migration's instance or volume, which may be of
// an earlier migration, or the zero value.
func (f *instanceFiles) readReceipt(m api.Migration) (runFile, error) {
	if m.Spec.Volume == "" {
		return f.readRun(m.Spec.Instance)
	}
	return readRunFile(f.receiptPath(m.Spec.Volume))
}

func (f *instanceFiles) writeReceipt(m api.Migration, r runFile) error {
	if m.Spec.Volume == "" {
		return f.writeRun(m.Spec.Instance, r)
	}
	return f.writeRunFile(f.receiptPath(m.Spec.Volume), r)
}

// dropReceipt removes the receipt of a volume's migration, unless it is another one's.
func (f *instanceFiles) dropReceipt(m api.Migration) error {
	r, err := f.readReceipt(m)
	if err != nil || r.Incoming != api.MigrationID(m.Meta.ID) {
		return err
	}
	return remove(f.receiptPath(m.Spec.Volume))
}

// sweepReceipts removes the receipts of migrations that do not exist any more.
func (s *orphanSweeper) sweepReceipts() error {
	entries, err := os.ReadDir(s.files.receipts())
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var errs []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if _, comes := s.cache.migrationOfVolume(api.VolumeID(id)); !comes {
			errs = append(errs, remove(s.files.receiptPath(api.VolumeID(id))))
		}
	}
	return errors.Join(errs...)
}
