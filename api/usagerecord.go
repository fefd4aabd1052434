package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// How long usage records are kept. Less than two months would remove the records that
// explain open periods and late lines.
const (
	MinKeepRecords     = 62 * 24 * time.Hour
	DefaultKeepRecords = 400 * 24 * time.Hour
)

// MaxRecords limits the usage records of a page.
const MaxRecords = 1000

// RecordPlace is the sort key of a usage record: organization, end and ID. It is unique
// in a store.
type RecordPlace struct {
	Organization string
	End          time.Time
	ID           string
}

// PlaceOf returns the sort key of a record.
func PlaceOf(r UsageRecord) RecordPlace {
	return RecordPlace{r.Meta.Organization, r.Spec.End.UTC(), r.Meta.ID}
}

// Compare orders records.
func (p RecordPlace) Compare(q RecordPlace) int {
	return cmp.Or(cmp.Compare(p.Organization, q.Organization), p.End.Compare(q.End), cmp.Compare(p.ID, q.ID))
}

// String returns the page token for the place; empty for the zero place.
func (p RecordPlace) String() string {
	if p == (RecordPlace{}) {
		return ""
	}
	return strconv.FormatInt(p.End.UnixNano(), 10) + "/" + p.Organization + "/" + p.ID
}

// ParseRecordPlace parses a token that String returned. The input is untrusted.
func ParseRecordPlace(s string) (p RecordPlace, err error) {
	if s == "" {
		return p, nil
	}
	bad := invalid("continue", "is not a token from a previous page").WithHint("omit it, or copy it unchanged from the previous page")
	parts := strings.SplitN(s, "/", 3)
	if len(parts) != 3 {
		return p, bad
	}
	ns, err := strconv.ParseInt(parts[0], 10, 64)
	if p = (RecordPlace{parts[1], time.Unix(0, ns).UTC(), parts[2]}); err != nil || ns < 1 || p.String() != s || !isPart(p.ID) || strings.IndexByte(p.Organization, 0) >= 0 {
		return RecordPlace{}, bad
	}
	return p, nil
}

// RecordQuery selects usage records by their end: after From, and not after To, so that
// the records of an hour (HourOf) are those from its beginning to its end. Empty fields
// select all; without an organization, the records are ordered by organization.
type RecordQuery struct {
	Organization, Project string
	Resource              string
	Meter                 Meter
	ID                    string
	From, To              time.Time
	After                 RecordPlace // from the previous page; zero: the first page
	Limit                 int         // 1 to MaxRecords
}

// RecordPage is one page. More reports that another may follow, after Next: a page may
// have fewer than Limit items, or none, because the number of records that it examines
// is limited.
type RecordPage struct {
	Items []UsageRecord
	More  bool
	Next  RecordPlace
}

// Check returns what is wrong with the query, or nil.
func (q RecordQuery) Check() error {
	switch {
	case q.Limit < 1 || q.Limit > MaxRecords:
		return invalid("limit", "must be between 1 and %d", MaxRecords)
	case q.Organization != "" && q.After != RecordPlace{} && q.After.Organization != q.Organization:
		return invalid("continue", "is a token from a page of another organization")
	case strings.IndexByte(q.Organization, 0) >= 0:
		return invalid("organization", "an organization is required")
	}
	return nil
}

// Has reports whether the query selects a record of its organization.
func (q RecordQuery) Has(r UsageRecord) bool {
	s := r.Spec
	return q.Within(s.End) && (q.Project == "" || q.Project == r.Meta.Project) && (q.Resource == "" || q.Resource == s.Resource) &&
		(q.Meter == "" || q.Meter == s.Meter) && (q.ID == "" || q.ID == r.Meta.ID)
}

// Within reports whether a record with this end is in the query's period.
func (q RecordQuery) Within(end time.Time) bool {
	return end.After(q.From) && (q.To.IsZero() || !end.After(q.To))
}

// CheckRecord returns what is wrong with a command about usage records, or nil.
// OpRecord and OpExpire are for usage records only, and no other operation applies to
// them.
func CheckRecord(c Command) error {
	switch records := c.Kind == KindUsageRecord; {
	case records && c.Op != OpRecord && c.Op != OpExpire:
		return invalid("op", "usage records cannot be changed")
	case !records && (c.Op == OpRecord || c.Op == OpExpire):
		return invalid("op", "usage of type %s is not recorded", clip(string(c.Kind)))
	}
	return nil
}

// RecordOf returns the usage record that a command records at a time. Errors have code
// CodeInvalid: a record without valid usage is refused.
func RecordOf(c Command, at time.Time) (r UsageRecord, err error) {
	r = UsageRecord{Kind: KindUsageRecord, Meta: Meta{ID: c.ID, Name: c.ID, Organization: c.Organization, Project: c.Project, CreatedAt: at.UTC()}}
	if err := json.Unmarshal(c.Data, &r.Spec); err != nil {
		return r, Errorf(CodeInvalid, "the data of %s %s is not a usage record: %v", c.Kind, c.ID, err)
	}
	r.Spec.Start, r.Spec.End = r.Spec.Start.UTC(), r.Spec.End.UTC()
	if _, ok := UseOf(r); !ok {
		return r, invalid("data", "%s %s is not a valid usage record", c.Kind, clip(c.ID)).WithHint("want a meter, a resource, a quantity that is not negative, and a time from 1970 to 2200")
	}
	return r, nil
}

// expiry is the data of an OpExpire command.
type expiry struct {
	Before time.Time `json:"before"`
}

// ExpireRecords returns the command that removes an organization's usage records that
// ended before a time. A record that arrives later but ended before that time is
// treated as already removed: it is not counted.
func ExpireRecords(organization string, before time.Time) Command {
	return Command{Op: OpExpire, Kind: KindUsageRecord, ID: "records", Organization: organization, Data: Encode(expiry{before.UTC()})}
}

// ExpiryOf returns the time before which a command given at that time removes records;
// it is never more recent than MinKeepRecords.
func ExpiryOf(c Command, at time.Time) (before time.Time, err error) {
	var e expiry
	d := json.NewDecoder(bytes.NewReader(c.Data))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Before.Year() < 1970 || e.Before.After(at.Add(-MinKeepRecords)) {
		return before, invalid("data", "usage records are kept for %d days", MinKeepRecords/(24*time.Hour))
	}
	return e.Before.UTC(), nil
}
