package cli

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

// queueFlags declares what an instance does when no node has room for it.
func queueFlags(f *pflag.FlagSet) func(*api.InstanceSpec) error {
	queue := f.String("queue", "", "when no node has room: wait in the queue; with a duration, e.g. --queue=2h, delete it if it still waits then")
	f.Lookup("queue").NoOptDefVal = "always"
	refuse := f.Bool("no-queue", false, "when no node has room: fail instead of waiting in the queue")
	return func(s *api.InstanceSpec) error {
		switch {
		case f.Changed("queue") && *refuse:
			return api.Errorf(api.CodeInvalid, "--queue and --no-queue exclude each other").WithHint("use one of them")
		case *refuse:
			s.WhenFull, s.QueueUntil = api.WhenFullRefuse, nil
		case f.Changed("queue"):
			s.WhenFull, s.QueueUntil = api.WhenFullQueue, nil
			if *queue == "always" {
				return nil
			}
			d, err := time.ParseDuration(*queue)
			if err != nil || d <= 0 {
				return api.Errorf(api.CodeInvalid, "--queue=%s is not a duration", *queue).WithHint("e.g. --queue=2h, or --queue alone")
			}
			until := time.Now().Add(d).UTC().Truncate(time.Second)
			s.QueueUntil = &until
		}
		return nil
	}
}

// queueNote describes a place in the queue, and how long the wait is expected to take.
func queueNote(q api.InstanceQueue, now time.Time) string {
	note := fmt.Sprintf("position %d of %d in the queue", q.Position, q.Length)
	if q.Since != nil {
		note += ", waits for " + formatDuration(now.Sub(*q.Since))
	}
	switch {
	case q.UsualSeconds == 0:
		return note + ", estimate unknown"
	case q.ExpectedAt != nil:
		note += ", estimate " + formatDuration(q.ExpectedAt.Sub(now))
	default:
		note += ", longer than usual"
	}
	return note + fmt.Sprintf(" (similar ones waited %s, median of %d)", formatDuration(time.Duration(q.UsualSeconds)*time.Second), min(q.Samples, 20))
}
