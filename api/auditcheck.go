package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// AuditMark is a position in the audit trail: all events up to it are known. The zero
// mark precedes the first event.
type AuditMark struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Sealed returns the event with its seal: HMAC-SHA256 over its hash, with the cluster's
// key for the audit trail. Whoever changes the trail without the key can compute
// matching hashes but no seals.
func (e AuditEvent) Sealed(key []byte) AuditEvent {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("basalt audit event " + e.Hash))
	e.Seal = hex.EncodeToString(mac.Sum(nil))
	return e
}

// Genuine reports whether the event's seal was made with key.
func (e AuditEvent) Genuine(key []byte) bool {
	return hmac.Equal([]byte(e.Seal), []byte(e.Sealed(key).Seal))
}

// AuditCheckID is the id of the cluster's only AuditCheck.
const AuditCheckID = "auditcheck-cluster"

// AuditCheck is what the leader found when it last verified the audit trail.
type AuditCheck struct {
	Kind   Kind             `json:"kind"`
	Meta   Meta             `json:"meta"`
	Spec   struct{}         `json:"spec"`
	Status AuditCheckStatus `json:"status"`
}

// AuditCheckStatus is written by the leader.
type AuditCheckStatus struct {
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	Verified  AuditMark `json:"verified"` // the last event that was found correct
	// Changed describes what does not match, and ChangedAt when that was detected;
	// empty if everything matches.
	Changed   string    `json:"changed,omitempty"`
	ChangedAt time.Time `json:"changedAt,omitzero"`
	// Unanchored describes why the end of the trail could not be stored outside the
	// cluster, or could not be compared with the mark stored there.
	Unanchored   string    `json:"unanchored,omitempty"`
	UnanchoredAt time.Time `json:"unanchoredAt,omitzero"`
}
