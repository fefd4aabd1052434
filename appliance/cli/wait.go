package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// waiting holds --wait and --timeout.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (k *kind[T]) waitFlags(cmd *cobra.Command) *waiting {
	w := &waiting{}
	if k.ready != nil {
		addWaitFlags(cmd, w)
	}
	return w
}

func addWaitFlags(cmd *cobra.Command, w *waiting) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait for completion and print progress")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 10*time.Minute, "timeout for --wait")
}

// await waits until an object matches its spec, and returns its last state.
func (k *kind[T]) await(ctx context.Context, o T, w waiting) (T, error) {
	if !w.wait || k.ready == nil {
		return o, nil
	}
	reported := ""
	err := k.follow(ctx, o, w, func(now T, gone bool) (bool, error) {
		m := api.MetaOf(&now)
		if gone {
			return false, api.Errorf(api.CodeNotFound, "%s %s was deleted while waiting for it", api.KindOf[T](), m.Name)
		}
		o = now
		done, doing, err := k.ready(now)
		if doing != "" && doing != reported {
			reported = doing
			fmt.Fprintf(k.app.Err, "%s %s: %s\n", k.noun, m.Name, printable(doing))
		}
		return done, err
	})
	return o, err
}

// awaitGone waits until an object is removed.
func (k *kind[T]) awaitGone(ctx context.Context, o T, w waiting) error {
	return k.follow(ctx, o, w, func(_ T, gone bool) (bool, error) { return gone, nil })
}

// follow calls f with every state of an object, starting with o, until f is done.
func (k *kind[T]) follow(ctx context.Context, o T, w waiting, f func(now T, gone bool) (bool, error)) error {
	id, since := api.MetaOf(&o).ID, api.MetaOf(&o).Revision
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, api.Errorf(codeTimeout, "%s %s did not become ready within %s", api.KindOf[T](), api.MetaOf(&o).Name, w.timeout).
		WithHint("it continues without this command: basalt %s get %s", k.noun, api.MetaOf(&o).Name))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	f = patiently(k.app.Patience, giveUp, f)
	if done, err := f(o, false); done || err != nil {
		return err
	}
	// The object may have been removed before the watch began.
	now, err := k.objects().Get(ctx, id, k.query())
	switch {
	case api.CodeOf(err) == api.CodeNotFound && err != nil:
		_, err := f(o, true)
		return err
	case err != nil:
		return timedOut(ctx, err)
	}
	if since = max(since, api.MetaOf(&now).Revision); since > api.MetaOf(&o).Revision {
		if done, err := f(now, false); done || err != nil {
			return err
		}
	}
	for change, err := range k.objects().Watch(ctx, since) {
		if err != nil {
			return timedOut(ctx, err)
		}
		now, gone := change.Object, change.Type == api.EventRemove
		if change.Type == api.EventSync {
			if now, err = k.objects().Get(ctx, id, k.query()); err != nil {
				if api.CodeOf(err) != api.CodeNotFound {
					return timedOut(ctx, err)
				}
				gone = true
			}
		} else if api.MetaOf(&now).ID != id {
			continue
		}
		if done, err := f(now, gone); done || err != nil {
			return err
		}
	}
	return timedOut(ctx, errors.New("the watch ended"))
}

// patiently tolerates for a while that an object cannot be placed, as capacity may become
// available. Then it calls giveUp with the reason. Any other error ends the wait at once.
func patiently[T any](patience time.Duration, giveUp context.CancelCauseFunc, f func(T, bool) (bool, error)) func(T, bool) (bool, error) {
	if patience == 0 {
		patience = 15 * time.Second
	}
	var timer *time.Timer
	return func(now T, gone bool) (bool, error) {
		done, err := f(now, gone)
		why, stuck := err, err != nil && api.CodeOf(err) == api.CodeNoCapacity
		switch {
		case stuck && timer == nil:
			timer = time.AfterFunc(patience, func() { giveUp(why) })
		case !stuck && timer != nil:
			timer.Stop()
			timer = nil
		}
		if stuck {
			err = nil
		}
		return done, err
	}
}

// timedOut returns the reason why ctx ended if there is one, else err.
func timedOut(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
