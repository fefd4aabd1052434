package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Timing of a lease. These are part of the protocol: a cluster whose members use
// different values is not safe, so they are not configurable.
const (
	Every    = 2 * time.Second  // between heartbeats
	TTL      = 10 * time.Second // of a lease, from before its heartbeat was sent
	Watchdog = 10 * time.Second // from the last ping of the watchdog to the reset
	Guard    = 5 * time.Second  // for killing and differing clock rates
	Dead     = TTL + Watchdog + Guard

	Silence    = 6 * time.Second // without a heartbeat until witnesses count
	ProbeEvery = time.Second
	ProbeDown  = 3               // misses in a row until a path is down
	OpinionAge = 5 * time.Second // after which an opinion expires
	Witnesses  = 2               // needed to suspect a node
)

// HeartbeatPath is the path on which members serve heartbeats to each other.
const HeartbeatPath = "/lease/v1/heartbeat"

// MaxBody is the maximum size of a heartbeat in bytes, small enough to be relayed.
const MaxBody = 64 << 10

const (
	wireVersion = 1
	maxReports  = 512 // in a heartbeat; 64 members on 4 paths each fit
	maxText     = 256 // bytes of an ID, a path or a boot ID
)

// Heartbeat is what a node sends to the leader every 2 s.
type Heartbeat struct {
	V      int        `json:"v"`
	Node   api.NodeID `json:"node"`
	Epoch  int64      `json:"epoch"`
	BootID string     `json:"bootId,omitempty"`
	// SentAt is the sender's CLOCK_BOOTTIME in nanoseconds, for its own use and for
	// logs. The leader does not use it.
	SentAt Instant      `json:"sentAt"`
	Sees   []PathReport `json:"sees,omitempty"`
}

// PathReport reports whether the sender reaches a node on one path ("host:port").
type PathReport struct {
	Node api.NodeID `json:"node"`
	Path string     `json:"path"`
	Up   bool       `json:"up"`
}

// Answer is the answer to a heartbeat: a grant, a refusal, or neither with a
// reason.
type Answer struct {
	V       int  `json:"v"`
	Granted bool `json:"granted,omitempty"`
	// TTL is the validity of the grant in nanoseconds, counted from before the
	// heartbeat was sent. The node limits it to the constant TTL.
	TTL time.Duration `json:"ttl,omitempty"`
	// Refused is the epoch that the node must adopt after it has destroyed the
	// instances of older epochs; 0 if not refused.
	Refused int64 `json:"refused,omitempty"`
	// NotLeader means that another node must be asked: Leader, if known.
	NotLeader bool       `json:"notLeader,omitempty"`
	Leader    api.NodeID `json:"leader,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

// DecodeHeartbeat decodes a heartbeat from the network.
func DecodeHeartbeat(b []byte) (h Heartbeat, err error) {
	if err := decode(b, &h); err != nil {
		return Heartbeat{}, fmt.Errorf("heartbeat: %w", err)
	}
	return h, h.Check()
}

// Check checks a heartbeat against the limits.
func (h Heartbeat) Check() error {
	switch {
	case h.V != wireVersion:
		return fmt.Errorf("heartbeat has version %d, want %d", h.V, wireVersion)
	case h.Node == "":
		return errors.New("heartbeat has no node")
	case len(h.Node) > maxText || len(h.BootID) > maxText:
		return errors.New("heartbeat has a name that is too long")
	case h.Epoch < 0:
		return errors.New("heartbeat has a negative epoch")
	case len(h.Sees) > maxReports:
		return fmt.Errorf("heartbeat has %d opinions, want at most %d", len(h.Sees), maxReports)
	}
	for _, s := range h.Sees {
		if s.Node == "" || len(s.Node) > maxText || len(s.Path) > maxText {
			return errors.New("heartbeat has an opinion without a node")
		}
	}
	return nil
}

// decode rejects a document that is too long, is followed by other data or is not
// JSON. Unknown fields, which a newer member may send, are ignored.
func decode(b []byte, v any) error {
	if len(b) > MaxBody {
		return fmt.Errorf("document of %d bytes is too long: want at most %d", len(b), MaxBody)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decode document: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the document")
	}
	return nil
}
