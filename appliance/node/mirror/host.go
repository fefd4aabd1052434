package mirror

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Host is this machine.
type Host struct {
	Out io.Writer // what is done, in lines
}

// State reads this machine's state.
func (Host) State() (State, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return State{}, err
	}
	return Read(os.DirFS("/sys"), string(mounts))
}

func (h Host) run(ctx context.Context, argv []string) (string, error) {
	if h.Out != nil {
		fmt.Fprintln(h.Out, "+", strings.Join(argv, " "))
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", argv[0], err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// Replace fills a disk, such as sda, in place of one that is missing. The arrays are filled
// in the background. Package bootloader makes it bootable.
func (h Host) Replace(ctx context.Context, disk string) error {
	s, err := h.State()
	if err != nil {
		return err
	}
	esp := "00000000"
	if members := s.Members(); len(members) > 0 {
		out, err := h.run(ctx, []string{"blkid", "-s", "UUID", "-o", "value", Partition(members[0], ESP)})
		if err != nil {
			return err
		}
		if esp, err = VolumeID(out); err != nil {
			return err
		}
	}
	commands, err := Replacement(s, disk, esp)
	if err != nil {
		return err
	}
	for _, argv := range commands {
		if _, err := h.run(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}
