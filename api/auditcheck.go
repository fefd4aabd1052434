package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// AuditMark is a place in the audit trail: who has it knows all events up to it.
// The zero one is before the first.
type AuditMark struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Sealed gives the event its seal, by the cluster's key for the audit trail:
// HMAC-SHA256 over its hash. Who changes the trail without the key can make hashes
// that fit, and no seals.
func (e AuditEvent) Sealed(key []byte) AuditEvent {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("basalt audit event " + e.Hash))
	e.Seal = hex.EncodeToString(mac.Sum(nil))
	return e
}

// Genuine reports whether the seal is the key's for the event.
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

// AuditCheckStatus is the leader's to write.
type AuditCheckStatus struct {
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	Verified  AuditMark `json:"verified"` // the last event of the last time that all was well
	// Changed describes what does not fit, and ChangedAt since when that is known;
	// empty: all does.
	Changed   string    `json:"changed,omitempty"`
	ChangedAt time.Time `json:"changedAt,omitzero"`
	// Unanchored describes why the trail's end could not be kept outside, or could not be
	// compared with what is kept there.
	Unanchored   string    `json:"unanchored,omitempty"`
	UnanchoredAt time.Time `json:"unanchoredAt,omitzero"`
}
