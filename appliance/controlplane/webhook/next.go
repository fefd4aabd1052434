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
	start := func() { st.StartedAt, st.Attempts, st.NextAt, st.LastError, st.Cause = &now, 0, nil, "", api.Cause{} }
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
// zero if it succeeded.
func afterAttempt(id string, st api.WebhookStatus, e api.WebhookEvent, failed api.Reason, now time.Time) api.WebhookStatus {
	if failed == (api.Reason{}) {
		st.Cursor, st.DeliveredAt = e.Seq, &now
		st.Delivered, st.Attempts, st.NextAt, st.LastError, st.Cause = st.Delivered+1, 0, nil, "", api.Cause{}
		return st
	}
	st.Attempts++
	st.LastError, st.Cause = failed.Parts()
	since := e.Timestamp
	if st.StartedAt != nil && st.StartedAt.After(since) {
		since = *st.StartedAt
	}
	wait := waits.Wait(id, st.Attempts)
	if now.Sub(since) >= giveUp {
		given := append([]api.WebhookGivenUp{}, st.GivenUpEvents...)
		given = append(given, api.WebhookGivenUp{Seq: e.Seq, Event: e.ID, Type: e.Type, At: now, Error: st.LastError, Cause: st.Cause})
		st.Cursor, st.GivenUp, st.GivenUpEvents = e.Seq, st.GivenUp+1, given[max(0, len(given)-maxGivenUp):]
		st.Attempts, wait = 0, nextWait
	}
	at := now.Add(wait)
	st.NextAt = &at
	return st
}
