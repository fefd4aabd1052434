package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// batchVersion is the first byte of a log entry. Numbers are append-only: a
// log written by this version must replay on every later one.
// Batches with claims, those with amounts or a note for the audit trail, and those
// that raise events have numbers of their own, so that a program that does not know them stops. Each number's successor is the
// same in one term only (term.go).
const (
	batchVersion   = 1
	claimsVersion  = 3
	tenancyVersion = 5
	raiseVersion   = 7
)

// Limits of one batch. They are checked before it enters the log, never when
// it is applied: a later version may move them, and old logs must still replay.
const (
	maxCommands   = 1000
	maxBatchBytes = 4 << 20
	maxNameBytes  = 512 // of an id, a name, an organization or a project: they become keys
)

// encodeBatch is the log entry of a batch: the version, then JSON.
func encodeBatch(b api.Batch) ([]byte, error) {
	raw, err := encodeJSON(b)
	if err != nil {
		return nil, api.Errorf(api.CodeInvalid, "the batch cannot be encoded: %v", err)
	}
	version := byte(batchVersion)
	if b.Audit != nil {
		version = tenancyVersion
	}
	for _, c := range b.Commands {
		if c.Claims != nil {
			version = max(version, claimsVersion)
		}
		if c.Uses != nil || c.Limits != nil {
			version = max(version, tenancyVersion)
		}
		if c.Raise != nil {
			version = raiseVersion
		}
	}
	return append([]byte{version}, raw...), nil
}

// decodeBatch reads a log entry. An error means that a newer version wrote it,
// or that it is damaged: it must not be skipped.
func decodeBatch(raw []byte) (api.Batch, error) {
	var b api.Batch
	if len(raw) == 0 {
		return b, fmt.Errorf("the log entry is empty")
	}
	switch raw[0] {
	case batchVersion, claimsVersion, tenancyVersion, raiseVersion:
	default:
		return b, fmt.Errorf("the log entry has version %d; this program knows %d, %d, %d and %d", raw[0], batchVersion, claimsVersion, tenancyVersion, raiseVersion)
	}
	if err := json.Unmarshal(raw[1:], &b); err != nil {
		return b, fmt.Errorf("the log entry cannot be decoded: %w", err)
	}
	return b, nil
}

// checkBatch refuses what must not enter the log.
func checkBatch(b api.Batch) error {
	if len(b.Commands) > maxCommands {
		return api.Errorf(api.CodeTooLarge, "a batch of %d commands is too large", len(b.Commands)).
			WithHint("at most %d commands fit in one batch", maxCommands)
	}
	if len(b.ID) > maxNameBytes {
		return api.Errorf(api.CodeInvalid, "a batch id may have %d bytes", maxNameBytes)
	}
	for _, c := range b.Commands {
		if c.Kind == "" || c.ID == "" {
			return api.Errorf(api.CodeInvalid, "a command needs a kind and an id")
		}
		for field, s := range map[string]string{
			"kind": string(c.Kind), "meta.id": c.ID, "meta.name": c.Name,
			"meta.organization": c.Organization, "meta.project": c.Project,
		} {
			// NUL separates the parts of keys.
			if len(s) > maxNameBytes || bytes.IndexByte([]byte(s), 0) >= 0 {
				return api.Errorf(api.CodeInvalid, "at most %d bytes, none of them zero", maxNameBytes).At(field)
			}
		}
		if err := errors.Join(api.CheckClaims(c), api.CheckAmounts(c), api.CheckRaise(c)); err != nil {
			return err
		}
		if len(c.Data) > 0 && !json.Valid(c.Data) {
			return api.Errorf(api.CodeInvalid, "the data of %s %s is no JSON", c.Kind, c.ID)
		}
	}
	return nil
}

// encodeJSON leaves <, > and & as they are: a Spec must come back as it went
// in, or the same Spec again would look like a change.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
