package webhook

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// An event that could not be delivered for a day is given up.
const (
	// nextWait is the pause between an event that was given up and the next one.
	nextWait = time.Second
	giveUp   = 24 * time.Hour
	// maxGivenUp is how many such events the status lists; it counts all.
	maxGivenUp = 20
)

// waits are the pauses between attempts: each is twice the previous one.
var waits = api.Backoff{First: 5 * time.Second, Last: time.Hour}

// resumed returns the status from which a worker continues with a webhook that is new,
// was paused or resumed, or whose replay was requested.
func resumed(h api.Webhook, st api.WebhookStatus, now time.Time) api.WebhookStatus {
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

// afterAttempt returns the status of a webhook after an attempt to deliver e; failed is
// nil if it succeeded.
func afterAttempt(id string, st api.WebhookStatus, e api.WebhookEvent, failed error, now time.Time) api.WebhookStatus {
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
	wait := waits.Wait(id, st.Attempts)
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
