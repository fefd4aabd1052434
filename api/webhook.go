package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Limits of the events that the store keeps. Older events are removed, delivered or
// not; when there are too many, the oldest of the organization with the most are
// removed. The limits are part of the state machine, so all nodes must have the same
// values.
const (
	WebhookEventAge  = 7 * 24 * time.Hour
	MaxWebhookEvents = 100_000
)

// MaxWebhooks limits the webhooks of an organization unless its quota sets another
// limit.
const MaxWebhooks = 16

// CommandEvent is an event that is part of a command: the state machine stores it if the
// command changes its object. Without an organization it belongs to the object's.
type CommandEvent struct {
	Type         string          `json:"type"` // "invoice.issued"
	Organization string          `json:"organization,omitempty"`
	Project      string          `json:"project,omitempty"`
	Webhook      string          `json:"webhook,omitempty"` // the only recipient; empty: all
	Data         json.RawMessage `json:"data,omitempty"`
}

// EventData is JSON whose schema depends on the event type.
type EventData = json.RawMessage

// EventTest is the type of an event that only tests a webhook.
const EventTest = "webhook.test"

// DeliveryState is the state of the delivery of an event to one webhook.
type DeliveryState string

// Delivery states.
const (
	DeliveryDelivered DeliveryState = "Delivered"
	DeliveryWaiting   DeliveryState = "Waiting"
	DeliveryRetrying  DeliveryState = "Retrying"
	DeliveryGivenUp   DeliveryState = "GivenUp"
	DeliveryPast      DeliveryState = "Past" // delivered or abandoned: only the last abandoned events are listed individually
)

// EventQuery selects events.
type EventQuery struct {
	Organization string // empty: any
	After        int64  // seq of the last of the page before
	Newest       bool   // newest first; After 0 then starts at the end
	Limit        int    // 1 to 1000
}

// EventPage is one page; More reports whether another follows its last item. Dropped
// counts the events of the query's organization that were removed before their time,
// because there were too many events in total and it had the most.
type EventPage struct {
	Items   []WebhookEvent
	More    bool
	Dropped int64
}

// tellPhases maps the phases that raise an event, in which an object comes to rest, to
// event names.
var tellPhases = map[string]string{
	"Running": "running", "Stopped": "stopped", "Failed": "failed", "Ready": "ready", "Succeeded": "succeeded",
}

// EventObject is the data of an event about an object.
type EventObject struct {
	Kind         Kind   `json:"kind"`
	ID           string `json:"id"`
	Name         string `json:"name,omitempty"`
	Organization string `json:"organization,omitempty"`
	Project      string `json:"project,omitempty"`
	Phase        string `json:"phase,omitempty"`
	Error        string `json:"error,omitempty"`
	Revision     int64  `json:"revision"`
}

// Types of events about the queue of instances; their data is a QueueEvent.
const (
	EventInstancePlaced  = "instance.placed"        // a node has room for an instance that waited
	EventInstanceResized = "instance.resized"       // an instance that waited for another size has it
	EventQueueExpired    = "instance.queue_expired" // an instance was deleted at its deadline
)

// QueueEvent is the data of an event about an instance that was in the queue.
type QueueEvent struct {
	EventObject
	QueuedAt   time.Time  `json:"queuedAt"`
	QueueUntil *time.Time `json:"queueUntil,omitempty"`
}

// EventsOf returns the events of one change: at most one for the change itself, and the
// one that its command raised. Order and IDs are derived from the revision, so that
// they are the same on every node and not reused after a restore. Without causes, they are
// those of clusters in which not all nodes know them.
func EventsOf(before *Object, change Event, event *CommandEvent, at time.Time, causes bool) []WebhookEvent {
	var out []WebhookEvent
	m := change.Object.Meta
	org, project := m.Organization, m.Project
	switch change.Object.Kind {
	case KindOrganization: // it belongs to the organization itself, not to its reseller
		org = m.ID
	case KindProject:
		project = m.ID
	}
	add := func(seq int64, what, org, project, webhook string, data json.RawMessage) {
		out = append(out, WebhookEvent{Seq: seq, ID: eventID(seq), Type: what, Timestamp: at.UTC(),
			Organization: org, Project: project, Webhook: webhook, Data: data})
	}
	if what := typeOf(before, change); what != "" {
		phase, failed := phaseOf(change.Object)
		if causes && hasCause(change.Object.Kind) {
			failed = causeOf(change.Object).Text(failed)
		}
		add(2*change.Revision, what, org, project, "", Encode(EventObject{Kind: change.Object.Kind, ID: m.ID, Name: m.Name,
			Organization: m.Organization, Project: m.Project, Phase: phase, Error: failed, Revision: change.Revision}))
	}
	if event != nil {
		if event.Organization != "" {
			org, project = event.Organization, event.Project
		}
		add(2*change.Revision+1, event.Type, org, project, event.Webhook, event.Data)
	}
	return out
}

func eventID(seq int64) string { return fmt.Sprintf("evt-%012x", seq) }

// EventSeq returns the sequence number in an event's ID.
func EventSeq(id string) (seq int64, ok bool) {
	hex, ok := strings.CutPrefix(id, "evt-")
	if !ok || len(hex) > 16 {
		return 0, false
	}
	n, err := fmt.Sscanf(hex, "%x", &seq)
	return seq, n == 1 && err == nil && seq > 0 && eventID(seq) == id
}

// typeOf returns the event type of a change; empty if it raises no event.
func typeOf(before *Object, change Event) string {
	noun, o := change.Object.Kind.Info().Event, change.Object
	if noun == "" {
		return ""
	}
	switch {
	case change.Type == EventRemove:
		return noun + ".deleted"
	case before == nil:
		return noun + ".created"
	case o.Kind == KindOrganization:
		was, is := suspended(*before), suspended(o)
		switch {
		case is && !was:
			return noun + ".suspended"
		case was && !is:
			return noun + ".resumed"
		}
	}
	was, _ := phaseOf(*before)
	is, _ := phaseOf(o)
	if word := tellPhases[is]; is != was && word != "" {
		return noun + "." + word
	}
	return ""
}

func phaseOf(o Object) (phase, failed string) {
	var s struct {
		Phase     string `json:"phase"`
		LastError string `json:"lastError"`
	}
	_ = json.Unmarshal(o.Status, &s) // an invalid status has no phase
	return s.Phase, s.LastError
}

func causeOf(o Object) Cause {
	var s struct {
		Cause Cause `json:"cause"`
	}
	_ = json.Unmarshal(o.Status, &s) // an invalid status has no cause
	return s.Cause
}

func suspended(o Object) bool {
	var s struct {
		Suspended *json.RawMessage `json:"suspended"`
	}
	_ = json.Unmarshal(o.Spec, &s) // an invalid spec is not suspended
	return s.Suspended != nil
}

// WantedBy reports whether a webhook receives the event.
func (e WebhookEvent) WantedBy(id, organization string, patterns []string) bool {
	if organization != "" && e.Organization != organization {
		return false
	}
	if e.Webhook != "" {
		return e.Webhook == id
	}
	for _, p := range patterns {
		if prefix, all := strings.CutSuffix(p, "*"); p == e.Type || all && strings.HasPrefix(e.Type, prefix) {
			return true
		}
	}
	return len(patterns) == 0
}

// Body returns the body of the request that delivers the event; it is the same for
// every attempt.
func (e WebhookEvent) Body() []byte {
	return Encode(struct {
		ID           string          `json:"id"`
		Type         string          `json:"type"`
		Timestamp    time.Time       `json:"timestamp"`
		Organization string          `json:"organization,omitempty"`
		Project      string          `json:"project,omitempty"`
		Data         json.RawMessage `json:"data,omitempty"`
	}{e.ID, e.Type, e.Timestamp, e.Organization, e.Project, e.Data})
}

var (
	typePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}(\.[a-z][a-z0-9_]{0,31}){1,3}$`)
	wantPattern = regexp.MustCompile(`^([a-z][a-z0-9_]{0,31}\.){0,3}(\*|[a-z][a-z0-9_]{0,31})$`)
)

// CheckCommandEvent returns what is wrong with a command's event, or nil.
func CheckCommandEvent(c Command) error {
	const most = 64 << 10
	r := c.Event
	switch {
	case r == nil:
		return nil
	case !typePattern.MatchString(r.Type):
		return invalid("raise.type", "unknown event type %q", clip(r.Type)).WithHint("e.g. invoice.issued")
	case len(r.Data) > most:
		return Errorf(CodeTooLarge, "data of an event must have at most %d bytes", most)
	case len(r.Data) > 0 && !json.Valid(r.Data):
		return invalid("raise.data", "data of an event must be JSON")
	}
	for _, s := range []string{r.Organization, r.Project, r.Webhook} {
		if len(s) > MaxClaimBytes || hasControl(s) {
			return invalid("raise", "%q is not a valid ID", clip(s))
		}
	}
	return nil
}

// ValidateWebhook checks a spec.
func ValidateWebhook(s WebhookSpec) error {
	var bad faults
	u, err := url.Parse(s.URL)
	switch {
	case err != nil, len(s.URL) > 2048, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		bad.note(invalid("spec.url", "%q is not a valid address", clip(s.URL)).WithHint("e.g. https://billing.example/basalt"))
	case u.User != nil, u.Fragment != "":
		bad.note(invalid("spec.url", "must not contain a user name, a password or a fragment").WithHint("requests are signed: verify the signature instead"))
	case len(s.Events) > 64:
		bad.note(invalid("spec.events", "must have at most 64 types of events"))
	}
	for i, p := range s.Events {
		if !wantPattern.MatchString(p) {
			bad.note(invalid(fmt.Sprintf("spec.events[%d]", i), "unknown event type %q", clip(p)).WithHint("e.g. instance.failed, or instance.* for all of a kind"))
		}
	}
	return bad.err()
}
