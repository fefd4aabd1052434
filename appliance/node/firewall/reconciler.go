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

// Reconciler keeps the rules as wanted. It is used by one goroutine.
type Reconciler struct {
	Host Host
	Log  *slog.Logger

	done    Wanted
	kernel  string // the rules of done, as the kernel lists them
	checked time.Time
	failed  string // the last error, which is logged once
}

// Step installs or removes rules, if they are not as wanted.
func (r *Reconciler) Step(ctx context.Context, w Wanted, now time.Time) {
	if w == r.done && now.Sub(r.checked) < checkEvery {
		return
	}
	err := r.step(ctx, w)
	r.checked = now
	switch {
	case ctx.Err() != nil:
	case err != nil && err.Error() != r.failed:
		r.failed = err.Error()
		r.Log.Error("install firewall rules failed, retrying", "error", err)
	case err == nil:
		r.failed = ""
	}
}

func (r *Reconciler) step(ctx context.Context, w Wanted) error {
	if w.Ruleset == "" {
		if w == r.done && !r.checked.IsZero() {
			return nil
		}
		if err := r.Host.Remove(ctx, w.Permanent); err != nil {
			return err
		}
		r.done, r.kernel = w, ""
		return nil
	}
	if w == r.done {
		have, err := r.Host.InForce(ctx)
		if err != nil || have == r.kernel {
			return err
		}
		r.Log.Warn("firewall rules were changed by another program, installing them again")
	}
	if err := r.Host.Install(ctx, w.Ruleset, w.Permanent); err != nil {
		return err
	}
	have, err := r.Host.InForce(ctx)
	if err != nil {
		return err
	}
	if w != r.done {
		r.Log.Info("firewall rules installed", "permanent", w.Permanent)
	}
	r.done, r.kernel = w, have
	return nil
}
