package firewall

import (
	"context"
	"log/slog"
	"time"
)

// Wanted is what the rules are to be.
type Wanted struct {
	Ruleset   string // empty: none
	Permanent bool   // they also apply after a restart of the machine
}

// checkEvery is how often the kernel's rules are compared with those that were
// installed: another program may have flushed them.
const checkEvery = 30 * time.Second

// Keeper keeps the rules as wanted. It is used by one goroutine.
type Keeper struct {
	Host Host
	Log  *slog.Logger

	done    Wanted
	kernel  string // the rules of done, as the kernel lists them
	checked time.Time
	failed  string // the last error, which is logged once
}

// Step installs or removes rules, if they are not as wanted.
func (k *Keeper) Step(ctx context.Context, w Wanted, now time.Time) {
	if w == k.done && now.Sub(k.checked) < checkEvery {
		return
	}
	err := k.step(ctx, w)
	k.checked = now
	switch {
	case ctx.Err() != nil:
	case err != nil && err.Error() != k.failed:
		k.failed = err.Error()
		k.Log.Error("install firewall rules failed, retrying", "error", err)
	case err == nil:
		k.failed = ""
	}
}

func (k *Keeper) step(ctx context.Context, w Wanted) error {
	if w.Ruleset == "" {
		if w == k.done && !k.checked.IsZero() {
			return nil
		}
		if err := k.Host.Remove(ctx, w.Permanent); err != nil {
			return err
		}
		k.done, k.kernel = w, ""
		return nil
	}
	if w == k.done {
		have, err := k.Host.InForce(ctx)
		if err != nil || have == k.kernel {
			return err
		}
		k.Log.Warn("firewall rules were changed by another program, installing them again")
	}
	if err := k.Host.Install(ctx, w.Ruleset, w.Permanent); err != nil {
		return err
	}
	have, err := k.Host.InForce(ctx)
	if err != nil {
		return err
	}
	if w != k.done {
		k.Log.Info("firewall rules installed", "permanent", w.Permanent)
	}
	k.done, k.kernel = w, have
	return nil
}
