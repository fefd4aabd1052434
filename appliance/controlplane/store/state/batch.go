package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// batchVersion is the first byte of a log entry. Numbers are append-only: a log written
// by this version must replay on every later one. Batches with claims, those with
// amounts or an audit note, those that raise events, and those with usage records as
// rows have numbers of their own, so that a program that does not know them stops. Each
// number's successor is the same entry restricted to one term (term.go). A new number
// comes with a feature level, and is written from that level on only (level.go).
const (
	batchVersion   = 1
	claimsVersion  = 3
	tenancyVersion = 5
	raiseVersion   = 7
	recordVersion  = 9
)

// Limits of one batch. They are checked before it enters the log, never when it is
// applied: a later version may change them, and old logs must still replay.
const (
	MaxCommands   = 1000
	MaxBatchBytes = 4 << 20
	maxNameBytes  = 512 // of an ID, a name, an organization or a project: they become parts of keys
)

// logged is a batch as it is stored in the log: usage records are kept apart from the
// other commands.
type logged struct {
	api.Batch // without them
	records   []taken
	at        []int // the records' places among all commands, in their order
}

// EncodeBatch returns the log entry of a batch: the version, then JSON. In a batch that
// records or expires usage, the version is followed by the number of records (uvarint),
// then for each record the number of commands between it and the record before, and its
// row's key and value, both after their lengths (uvarints); then follows the JSON of
// the remaining batch.
func EncodeBatch(b api.Batch) ([]byte, error) {
	version, records := versionOf(b)
	out := []byte{version}
	if version == recordVersion {
		out = append(make([]byte, 0, 256+160*records), version)
		out = binary.AppendUvarint(out, uint64(records))
		var others []api.Command
		between := 0
		for _, c := range b.Commands {
			if c.Op != api.OpRecord {
				others = append(others, c)
				between++
				continue
			}
			r, err := api.RecordOf(c, b.At)
			if err != nil {
				return nil, err
			}
			w := rowOf(r)
			out = binary.AppendUvarint(out, uint64(between))
			out = append(binary.AppendUvarint(out, uint64(len(w.key))), w.key...)
			out = append(binary.AppendUvarint(out, uint64(len(w.value))), w.value...)
			between = 0
		}
		b.Commands = others
	}
	raw, err := EncodeJSON(b)
	if err != nil {
		return nil, api.Errorf(api.CodeInvalid, "encode batch: %v", err)
	}
	return append(out, raw...), nil
}

// versionOf returns the version of a batch's entry, and how many usage records the
// batch has.
func versionOf(b api.Batch) (version byte, records int) {
	version = batchVersion
	if b.Audit != nil {
		version = tenancyVersion
	}
	for _, c := range b.Commands {
		switch {
		case c.Op == api.OpRecord:
			version, records = recordVersion, records+1
		case c.Op == api.OpExpire:
			version = recordVersion
		case c.Event != nil:
			version = max(version, raiseVersion)
		case c.Uses != nil || c.Limits != nil:
			version = max(version, tenancyVersion)
		case c.Claims != nil:
			version = max(version, claimsVersion)
		}
	}
	return version, records
}

// decodeBatch decodes a log entry. An error means that a newer version wrote it, or
// that it is damaged: it must not be skipped.
func decodeBatch(raw []byte, names interned) (logged, error) {
	var b logged
	if len(raw) == 0 {
		return b, fmt.Errorf("the log entry is empty")
	}
	rest := raw[1:]
	switch raw[0] {
	case batchVersion, claimsVersion, tenancyVersion, raiseVersion:
	case recordVersion:
		var err error
		if rest, err = b.decodeRecords(rest, names); err != nil {
			return b, err
		}
	default:
		return b, &TooOld{fmt.Sprintf("the log entry has version %d", raw[0])}
	}
	if err := json.Unmarshal(rest, &b.Batch); err != nil {
		return b, fmt.Errorf("decode log entry: %w", err)
	}
	if n := len(b.at); n > 0 && b.at[n-1] >= n+len(b.Commands) {
		return b, fmt.Errorf("the log entry has %d commands, and a record is the %dth", n+len(b.Commands), b.at[n-1]+1)
	}
	return b, nil
}

// decodeRecords decodes the rows of an entry, and returns what follows them.
func (b *logged) decodeRecords(raw []byte, names interned) (rest []byte, err error) {
	d := rowReader{raw: raw}
	n := d.uvarint()
	if d.bad || n > uint64(len(raw)) {
		return nil, fmt.Errorf("the log entry has %d usage records, which do not fit in it", n)
	}
	b.records, b.at = make([]taken, 0, min(n, MaxCommands)), make([]int, 0, min(n, MaxCommands))
	next := 0
	for range n {
		between, w := d.uvarint(), row{d.part(), d.part()}
		if d.bad || between > uint64(len(raw)) {
			return nil, fmt.Errorf("a usage record of the log entry cannot be decoded")
		}
		r, err := takenOf(w, names)
		if err != nil {
			return nil, err
		}
		b.records, b.at = append(b.records, r), append(b.at, next+int(between))
		next += int(between) + 1
	}
	return d.raw, nil
}

// answered inserts the answers to records between the other commands' objects.
func (b *logged) answered(others []api.Object) []api.Object {
	if len(b.records) == 0 {
		return others
	}
	out := make([]api.Object, 0, len(others)+len(b.records))
	for i, at := range b.at {
		n := at - len(out)
		out, others = append(out, others[:n]...), others[n:]
		r := b.records[i]
		out = append(out, recorded(r.organization, r.use.Project, r.id))
	}
	return append(out, others...)
}

// CheckBatch refuses a batch that must not enter the log, with a domain error.
func CheckBatch(b api.Batch) error {
	if len(b.Commands) > MaxCommands {
		return api.Errorf(api.CodeTooLarge, "batch is too large: %d commands", len(b.Commands)).
			WithHint("at most %d commands fit in one batch", MaxCommands)
	}
	if len(b.ID) > maxNameBytes {
		return api.Errorf(api.CodeInvalid, "batch ID must have at most %d bytes", maxNameBytes)
	}
	for _, c := range b.Commands {
		if c.Kind == "" || c.ID == "" {
			return api.Errorf(api.CodeInvalid, "a command must have a kind and an ID")
		}
		for field, s := range map[string]string{
			"kind": string(c.Kind), "meta.id": c.ID, "meta.name": c.Name,
			"meta.organization": c.Organization, "meta.project": c.Project,
		} {
			// NUL separates the parts of keys.
			if len(s) > maxNameBytes || bytes.IndexByte([]byte(s), 0) >= 0 {
				return api.Errorf(api.CodeInvalid, "must have at most %d bytes and no zero byte", maxNameBytes).At(field)
			}
		}
		if err := errors.Join(api.CheckClaims(c), api.CheckAmounts(c), api.CheckCommandEvent(c), api.CheckRecord(c), api.CheckUsed(c)); err != nil {
			return err
		}
		if c.Op != api.OpRecord && len(c.Data) > 0 && !json.Valid(c.Data) {
			return api.Errorf(api.CodeInvalid, "the data of %s %s is not JSON", c.Kind, c.ID)
		}
	}
	return nil
}

// EncodeJSON encodes v without escaping <, > and &: a Spec must be returned as it was
// sent, or the same Spec again would look like a change.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
