package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// release unmounts everything on the target and below, in reverse order of mounting.
func release(target string) error {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, m := range mountsBelow(string(info), target) {
		err := unix.Unmount(m, 0)
		for try := 0; errors.Is(err, unix.EBUSY) && try < 20; try++ {
			time.Sleep(100 * time.Millisecond) // udev or blkid may have it open for a moment
			err = unix.Unmount(m, 0)
		}
		if err != nil {
			return fmt.Errorf("unmounting %s: %w", m, err)
		}
	}
	return nil
}

// mountsBelow returns the mounts on target and below in mountinfo (proc(5)), the last
// mounted first.
func mountsBelow(mountinfo, target string) (found []string) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for _, line := range strings.Split(mountinfo, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := unescape.Replace(fields[4])
		if at == target || strings.HasPrefix(at, target+"/") {
			found = append([]string{at}, found...)
		}
	}
	return found
}

// await waits for device files, which udev creates shortly after the kernel has read
// the partition table.
func await(ctx context.Context, paths []string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, p := range paths {
		for {
			if _, err := os.Stat(p); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s does not appear: the kernel did not read the new partition table", p)
			case <-tick.C:
			}
		}
	}
	return nil
}
