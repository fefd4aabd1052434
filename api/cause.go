package api

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
)

// A text about what an object waits for, or why it failed, is written for operators: it
// may name nodes, daemons and paths. Beside it is a Cause, which is for every reader, and
// which portals show in the reader's language:
//
//	planner, agent, controller ─► text + Cause ─► operators read the text, and all others Cause.Text
//
// The API's responses contain the text for the caller (api/server/marks.go), so that a
// client shows one field whoever it is for. A text whose cause is plain is for every reader:
// it is about the user's own objects. A text without a cause is an operator's: the writer
// did not decide that it is for others too, or is of a version before causes.

// CauseCode is why an object is not as its user requested. Codes are stable, for programs.
type CauseCode string

// The codes; openapi.yaml describes them, and the portal has words for each.
const (
	CauseNoRoom          CauseCode = "no-room"
	CauseRoomReserved    CauseCode = "room-reserved"
	CauseNoStorage       CauseCode = "no-storage"
	CauseNodeUnavailable CauseCode = "node-unavailable"
	CauseDataLost        CauseCode = "data-lost"
	CauseDataElsewhere   CauseCode = "data-elsewhere"
	CauseMoving          CauseCode = "moving"
	CauseNotPlaced       CauseCode = "not-placed"
	CauseSuspended       CauseCode = "suspended"

	// What an object needs does not exist, or is not ready.
	CauseFlavorGone       CauseCode = "flavor-gone"
	CauseImageGone        CauseCode = "image-gone"
	CauseImageNotReady    CauseCode = "image-not-ready"
	CauseImageCopying     CauseCode = "image-copying"
	CauseVolumeGone       CauseCode = "volume-gone"
	CauseVolumeNotReady   CauseCode = "volume-not-ready"
	CauseSnapshotNotReady CauseCode = "snapshot-not-ready"
	CauseNoSnapshots      CauseCode = "no-snapshots"
	CauseHasSnapshots     CauseCode = "has-snapshots"
	CauseBackupGone       CauseCode = "backup-gone"
	CauseBackupQueued     CauseCode = "backup-queued"
	CauseRestoring        CauseCode = "restoring"
	CauseNetworkNotReady  CauseCode = "network-not-ready"
	CauseNetworkGone      CauseCode = "network-gone"
	CauseNoAddress        CauseCode = "no-address"
	CauseAddressInUse     CauseCode = "address-in-use"

	// A volume and the machine that has it open.
	CauseInstanceMoving   CauseCode = "instance-moving"
	CauseOpenElsewhere    CauseCode = "open-elsewhere"
	CauseRollbackLater    CauseCode = "rollback-later"
	CauseNoRoomToGrow     CauseCode = "no-room-to-grow"
	CauseSnapshotMoving   CauseCode = "snapshot-moving"
	CauseVolumeMoving     CauseCode = "volume-moving"
	CauseVolumeUnreadable CauseCode = "volume-unreadable"

	// The import of an image.
	CauseSourceUnreachable CauseCode = "source-unreachable"
	CauseSourceRefused     CauseCode = "source-refused"
	CauseSourceForbidden   CauseCode = "source-forbidden"
	CauseIncomplete        CauseCode = "incomplete"
	CauseChecksum          CauseCode = "checksum"
	CauseImageTooLarge     CauseCode = "image-too-large"
	CauseImageFormat       CauseCode = "image-format"
	CauseImageDamaged      CauseCode = "image-damaged"
	CauseImageNeedsFile    CauseCode = "image-needs-file"
	CauseImageEncrypted    CauseCode = "image-encrypted"

	// Backup targets.
	CauseTargetUnavailable CauseCode = "target-unavailable"
	CauseTargetGone        CauseCode = "target-gone"
	CauseTargetPassword    CauseCode = "target-password"
	CauseTargetDenied      CauseCode = "target-denied"
	CauseTargetFull        CauseCode = "target-full"
	CauseTargetEmpty       CauseCode = "target-empty"
	CauseTargetBusy        CauseCode = "target-busy"
	CauseBackupDamaged     CauseCode = "backup-damaged"

	// Machines.
	CauseCrashed      CauseCode = "crashed"
	CausePaused       CauseCode = "paused"
	CauseGPUEnded     CauseCode = "gpu-ended"
	CauseNodeShutdown CauseCode = "node-shutdown"

	// What an instance is doing.
	CauseEndingRun      CauseCode = "ending-run"
	CauseAwaitingPlan   CauseCode = "awaiting-plan"
	CauseAwaitingLease  CauseCode = "awaiting-lease"
	CauseLeavingNode    CauseCode = "leaving-node"
	CauseMigrating      CauseCode = "migrating"
	CauseMigratingFirst CauseCode = "migrating-first"
	CauseCreatingVolume CauseCode = "creating-volume"
	CauseWritingSeed    CauseCode = "writing-seed"
	CauseCreatingGPU    CauseCode = "creating-gpu"
	CauseStarting       CauseCode = "starting"
	CauseChangingMedia  CauseCode = "changing-media"
	CauseMediaLater     CauseCode = "media-later"
	CauseShuttingDown   CauseCode = "shutting-down"
	CausePoweringOff    CauseCode = "powering-off"
	CauseRemoving       CauseCode = "removing"

	// Deliveries of webhooks.
	CauseReceiverStatus      CauseCode = "receiver-status"
	CauseReceiverRedirect    CauseCode = "receiver-redirect"
	CauseReceiverUnreachable CauseCode = "receiver-unreachable"
	CauseReceiverForbidden   CauseCode = "receiver-forbidden"
	CauseReceiverAddress     CauseCode = "receiver-address"
	CauseReceiverSecret      CauseCode = "receiver-secret"

	// Payments by card, and cards on file.
	CauseCardDeclined       CauseCode = "card-declined"
	CauseCardFunds          CauseCode = "card-funds"
	CauseCardExpired        CauseCode = "card-expired"
	CauseCardDetails        CauseCode = "card-details"
	CauseCardAuthentication CauseCode = "card-authentication"
	CauseCardUnusable       CauseCode = "card-unusable"
	CausePaymentRefused     CauseCode = "payment-refused"
	CausePaymentSilent      CauseCode = "payment-silent"
	CausePaymentLimit       CauseCode = "payment-limit"
	CausePaymentCurrency    CauseCode = "payment-currency"

	// Errors of which programs distinguish only the kind.
	CauseInvalid     CauseCode = "invalid"
	CauseDenied      CauseCode = "denied"
	CauseGone        CauseCode = "gone"
	CauseInUse       CauseCode = "in-use"
	CauseWrongState  CauseCode = "wrong-state"
	CauseTooLarge    CauseCode = "too-large"
	CauseQuota       CauseCode = "quota"
	CauseStorageFull CauseCode = "storage-full"
	CauseFailed      CauseCode = "failed"
)

// CauseMissing is what no node has enough of.
type CauseMissing string

// The resources.
const (
	MissingCPUs    CauseMissing = "cpus"
	MissingMemory  CauseMissing = "memory"
	MissingStorage CauseMissing = "storage"
	MissingGPU     CauseMissing = "gpu"
)

// Plain is the cause beside a text that every reader may see, and that has no code.
var Plain = Cause{Plain: true}

// internalProblem is the sentence for a text that has no cause.
const internalProblem = "a problem of the cluster, whose details only its operator sees"

var causeTexts = map[CauseCode]string{
	CauseRoomReserved:    "the free capacity is reserved for instances that have waited longer",
	CauseNodeUnavailable: "what it needs is not available now; it continues by itself when it is",
	CauseDataLost:        "its data is lost, because the machine that stored it was removed: delete it",
	CauseDataElsewhere:   "there is capacity, but not where its data is stored",
	CauseMoving:          "it was being moved when something failed; it continues by itself when it is known where it is",
	CauseImageNotReady:   "its image is not ready",
	CauseNotPlaced:       "it waits until the object that it belongs to has a place",
}

// Text returns the sentence about the cause for readers who are not operators; beside is
// the text that the cause stands beside, empty if there is none.
func (c Cause) Text(beside string) string {
	switch {
	case c.Plain:
		return beside
	case c.Code == "" && beside == "":
		return ""
	case c.Code == CauseNoRoom:
		return c.noRoom()
	case c.Code == CauseNoStorage:
		return "no storage has room for a volume of " + FormatBytes(c.Bytes) + " now"
	}
	return cmp.Or(causeTexts[c.Code], internalProblem) // also one of a later version
}

func (c Cause) noRoom() string {
	switch c.Missing {
	case MissingGPU:
		what := cmp.Or(c.Model, "GPU") + " with " + FormatBytes(c.Bytes) + " of free VRAM"
		if c.Count > 0 {
			what += fmt.Sprintf(" and %d %% of its time", c.Count)
		}
		return "no " + what + " is available now"
	case MissingCPUs:
		return fmt.Sprintf("%d vCPUs are not free in one place now", c.Count)
	case MissingMemory:
		return FormatBytes(c.Bytes) + " of memory are not free in one place now"
	case MissingStorage:
		return FormatBytes(c.Bytes) + " of storage are not free in one place now"
	}
	return "there is no room for this size now"
}

// FormatBytes formats a number of bytes: "24 GiB".
func FormatBytes(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.4g %ciB", f, units[i])
}

// hasCause reports whether the status of a kind's objects has a cause beside lastError.
func hasCause(k Kind) bool {
	t := k.Info().Type
	if t == nil {
		return false
	}
	status, ok := t.FieldByName("Status")
	if !ok || status.Type.Kind() != reflect.Struct {
		return false
	}
	_, ok = status.Type.FieldByName("Cause")
	return ok
}

// Reason is a text for operators, and its cause; zero: nothing is wrong.
type Reason struct {
	Text  string
	Cause Cause
}

// Detail returns what an operator reads in addition to the sentence of the cause.
func (r Reason) Detail() string {
	if r.Cause.Plain {
		return ""
	}
	return r.Text
}

// PlainReason returns a reason that every reader may see, with the code of its cause and
// the name of the object that the text is about, if any.
func PlainReason(text string, code CauseCode, name string) Reason {
	if text == "" {
		return Reason{}
	}
	return Reason{text, Cause{Code: code, Name: name, Plain: true}}
}

// Parts returns the text and its cause, to be stored beside each other.
func (r Reason) Parts() (string, Cause) { return r.Text, r.Cause }

// kindsOfErrors are the codes of causes for errors without one.
var kindsOfErrors = map[Code]CauseCode{
	CodeInvalid: CauseInvalid, CodeMediaType: CauseInvalid, CodeTooLarge: CauseTooLarge,
	CodeUnauthenticated: CauseDenied, CodeForbidden: CauseDenied, CodeNotFound: CauseGone, CodeInUse: CauseInUse,
	CodeExists: CauseWrongState, CodeConflict: CauseWrongState, CodePrecondition: CauseWrongState, CodeState: CauseWrongState,
	CodeQuota: CauseQuota, CodeNoCapacity: CauseNoRoom, CodeDiskFull: CauseStorageFull,
	CodeUnavailable: CauseNodeUnavailable, CodeRateLimited: CauseNodeUnavailable, CodeInternal: CauseFailed,
}

// ReasonOf returns the reason for an error: the message of a domain error, which is for
// users if it has no details for operators, or fallback.
func ReasonOf(err error, fallback string) Reason {
	var e *Error
	if !errors.As(err, &e) {
		return Reason{Text: fallback}
	}
	c := e.Cause
	if c.Code == "" {
		c.Code = kindsOfErrors[e.Code]
	}
	c.Plain = e.Detail == ""
	return Reason{e.Error(), c}
}
