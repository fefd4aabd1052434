package install

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
)

// stopArrays stops arrays and erases their members' signatures.
func (e *Executor) stopArrays(ctx context.Context, a StopArrays) error {
	var arrays, members []string
	for _, d := range a.Disks {
		name := filepath.Base(d.Path)
		// The partitions of sda are sda1 and sda2, and each lists what holds it.
		found, err := filepath.Glob(filepath.Join(cmp.Or(e.Sys, "/sys"), "block", name, name+"*", "holders", "md*"))
		if err != nil {
			return fmt.Errorf("arrays on %s: %w", d.Path, err)
		}
		for _, f := range found {
			arrays = append(arrays, "/dev/"+filepath.Base(f))
			members = append(members, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(f))))
		}
	}
	slices.Sort(arrays)
	for _, array := range slices.Compact(arrays) {
		if err := e.run(ctx, []string{"mdadm", "--stop", array}, "", io.Discard); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err := e.run(ctx, []string{"wipefs", "--all", "--force", "--quiet", m}, "", io.Discard); err != nil {
			return err
		}
	}
	return nil
}
