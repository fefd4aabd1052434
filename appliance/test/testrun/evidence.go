package main

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// mostEvidence is the number of runs whose unsteady tests' files are kept.
const mostEvidence = 20

// keepEvidence copies the files that unsteady tests kept when they failed to a folder beside
// the history, which outlives the clone, so that their causes can be found although the run has
// passed. It removes the oldest folders.
func (o options) keepEvidence(kept string, unsteady []test, now time.Time) error {
	if len(unsteady) == 0 {
		return nil
	}
	all := filepath.Join(filepath.Dir(o.history), "test-unsteady")
	run := filepath.Join(all, now.UTC().Format("20060102T150405Z"))
	for _, t := range unsteady {
		if err := os.CopyFS(t.folder(run), os.DirFS(t.folder(kept))); err != nil {
			return err
		}
	}
	runs, err := filepath.Glob(filepath.Join(all, "*"))
	if err != nil {
		return err
	}
	slices.Sort(runs)
	for _, old := range runs[:max(0, len(runs)-mostEvidence)] {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	return nil
}
