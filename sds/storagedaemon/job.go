package storagedaemon

import (
	"context"
	"fmt"
	"time"
)

const jobPoll = time.Second // in case an event is lost

// Job runs a command that starts a job, and waits for the job's end. It
// completes a job that is ready and waits for that.
func (d *Daemon) Job(ctx context.Context, command string, args map[string]any) error {
	d.mu.Lock()
	d.next++
	id := fmt.Sprintf("job-%d", d.next)
	d.mu.Unlock()
	args["job-id"], args["auto-dismiss"] = id, false
	if err := d.Do(ctx, command, args, nil); err != nil {
		return err
	}
	tick := time.NewTicker(jobPoll)
	defer tick.Stop()
	for {
		var jobs []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
			Error  string `json:"error"`
		}
		if err := d.Do(ctx, "query-jobs", nil, &jobs); err != nil {
			return err
		}
		for _, j := range jobs {
			switch {
			case j.ID != id:
			case j.Status == "ready":
				if err := d.Do(ctx, "job-complete", map[string]any{"id": id}, nil); err != nil {
					return err
				}
			case j.Status == "concluded":
				err := d.Do(ctx, "job-dismiss", map[string]any{"id": id}, nil)
				if j.Error != "" {
					return &Error{command, j.Error}
				}
				return err
			}
		}
		select {
		case <-d.events:
		case <-tick.C:
		case <-d.done:
			return d.ended(fmt.Errorf("%s", command))
		case <-ctx.Done():
			_ = d.Do(context.WithoutCancel(ctx), "job-cancel", map[string]any{"id": id}, nil)
			return ctx.Err()
		}
	}
}
