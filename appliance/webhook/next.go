package webhook

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// The time between attempts doubles from the first to the last; an event that
// was tried in vain for a day is given up.
const (
	firstWait = 5 * time.Second
	lastWait  = time.Hour
	// nextWait is between an event that was given up and the one after it.
	nextWait = time.Second
	giveUp   = 24 * time.Hour
	// maxGivenUp are named in the status; all are counted.
	maxGivenUp = 20
)

// begun is the status from which to go on: of a webhook that is new, was
// paused, resumed, or told to begin again.
func begun(h api.Webhook, st api.WebhookStatus, now time.Time) api.WebhookStatus {
	start := func() { st.StartedAt, st.Attempts, st.NextAt, st.LastError = &now, 0, nil, "" }
	if st.StartedAt == nil || st.Replays < h.Spec.Replays {
		st.Cursor, st.Replays = h.Spec.ReplayAfter, h.Spec.Replays
		start()
	}
	if st.Paused && !h.Spec.Paused {
		start()
	}
	st.Paused = h.Spec.Paused
	return st
}

// after is the status after an attempt that failed, or did not. jitter is 0 to 1.
func after(st api.WebhookStatus, e api.WebhookEvent, failed error, now time.Time, jitter float64) api.WebhookStatus {
	if failed == nil {
		st.Cursor, st.DeliveredAt = e.Seq, &now
		st.Delivered, st.Attempts, st.NextAt, st.LastError = st.Delivered+1, 0, nil, ""
		return st
	}
	st.Attempts++
	st.LastError = failed.Error()
	since := e.Timestamp
	if st.StartedAt != nil && st.StartedAt.After(since) {
		since = *st.StartedAt
	}
	wait := backoff(st.Attempts, jitter)
	if now.Sub(since) >= giveUp {
		given := append([]api.WebhookGivenUp{}, st.GivenUpEvents...)
		given = append(given, api.WebhookGivenUp{Seq: e.Seq, Event: e.ID, Type: e.Type, At: now, Error: st.LastError})
		st.Cursor, st.GivenUp, st.GivenUpEvents = e.Seq, st.GivenUp+1, given[max(0, len(given)-maxGivenUp):]
		st.Attempts, wait = 0, nextWait
	}
	at := now.Add(wait)
	st.NextAt = &at
	return st
}

// backoff before the attempt that follows n ones: with up to a fifth more or
// less, so that not all come back at once.
func backoff(n int64, jitter float64) time.Duration {
	wait := min(firstWait<<min(n-1, 20), lastWait)
	return time.Duration(float64(wait) * (0.8 + 0.4*jitter))
}
