package firewall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// BootFile is where an installed node keeps its permanent rules, which
// basalt-firewall.service loads before the network is up.
const BootFile = "/var/lib/basalt/firewall.nft"

// Host is the machine whose rules are changed.
type Host struct {
	// Command runs nft: its path, preceded by a program that selects a network
	// namespace in tests.
	Command []string
	Boot    string // path of the boot file
}

// System is the machine that the program runs on.
var System = Host{Command: []string{"nft"}, Boot: BootFile}

// commandTime is the timeout of one command.
const commandTime = 30 * time.Second

func (h Host) run(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	argv := append(h.Command[:len(h.Command):len(h.Command)], args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the program is a constant, and the arguments are ours
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(input)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), err
}

// Check checks a ruleset without loading it.
func (h Host) Check(ctx context.Context, ruleset string) error {
	_, err := h.run(ctx, ruleset, "--check", "--file", "-")
	return err
}

// Install replaces the table's rules, in one transaction. Permanent rules are also
// written to the boot file, before they are loaded.
func (h Host) Install(ctx context.Context, ruleset string, permanent bool) error {
	if permanent {
		if err := h.writeBoot(ctx, ruleset); err != nil {
			return err
		}
	}
	_, err := h.run(ctx, ruleset, "--file", "-")
	return err
}

func (h Host) writeBoot(ctx context.Context, ruleset string) error {
	if old, err := os.ReadFile(h.Boot); err == nil && string(old) == ruleset {
		return nil
	}
	if err := h.Check(ctx, ruleset); err != nil {
		return err
	}
	return atomicfile.WriteFile(h.Boot, []byte(ruleset), 0o600)
}

// Remove removes the table, and with permanent the boot file. It returns nil if there is
// no table.
func (h Host) Remove(ctx context.Context, permanent bool) error {
	if permanent {
		if err := os.Remove(h.Boot); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if _, err := exec.LookPath(h.Command[0]); err != nil {
		return nil //nolint:nilerr // without nft no rules were loaded
	}
	// Declaring it first makes deleting it succeed if it does not exist.
	_, err := h.run(ctx, "table inet "+Table+"\ndelete table inet "+Table+"\n", "--file", "-")
	return err
}

// InForce returns the table's rules as the kernel has them, without counters; "" if
// there is no table.
func (h Host) InForce(ctx context.Context) (string, error) {
	out, err := h.run(ctx, "", "--stateless", "list", "table", "inet", Table)
	if err != nil && strings.Contains(err.Error(), "No such file or directory") {
		return "", nil
	}
	return out, err
}
