package api

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"time"
)

// A price change never affects past usage: changing a price book creates a new version,
// and changing an organization's price book adds an assignment. Both take effect at the
// start of an hour that has not begun, since usage is recorded by the hour.

// nextHour returns the earliest full hour that is not before now.
func nextHour(now time.Time) time.Time {
	h := now.UTC().Truncate(time.Hour)
	if h.Before(now) {
		h = h.Add(time.Hour)
	}
	return h
}

// takesEffect returns when a requested change takes effect. asked is the requested
// time, and had the time in the current object, which a client that reads and writes it
// back sends unchanged.
func takesEffect(field string, asked, had, now time.Time) (time.Time, *Error) {
	next := nextHour(now)
	switch {
	case asked.IsZero() || asked.Equal(had) && asked.Before(next):
		return next, nil
	case asked.Before(next):
		return next, invalid(field, "%s is in the past: prices of past usage cannot change", asked.UTC().Format(time.RFC3339)).
			WithHint("a full hour from %s on, or omit it", next.Format(time.RFC3339))
	}
	return asked.UTC(), fullHour(field, asked)
}

// PriceBookVersion is a former version of a price book. It never changes and is kept
// when the book is deleted, since the usage in its period is still rated by it.
type PriceBookVersion struct {
	Kind Kind
	Meta Meta
	Spec PriceBookVersionSpec
}

// PriceBookVersionSpec is the book's spec at that version.
type PriceBookVersionSpec struct {
	PriceBook PriceBookID   `json:"priceBook"`
	Prices    PriceBookSpec `json:"prices"`
}

// PriceBookVersionID returns the ID of the object that stores a version of a book.
func PriceBookVersionID(book PriceBookID, version int64) string {
	sum := sha256.Sum256([]byte("price book version\x00" + string(book) + "\x00" + strconv.FormatInt(version, 10)))
	return NewID(KindPriceBookVersion, sum[:])
}

// LastPriceBookVersionID returns the ID of the object that stores the last version of a
// deleted book.
func LastPriceBookVersionID(book PriceBookID) string { return PriceBookVersionID(book, -1) }

// keepVersion returns the command that stores a version.
func keepVersion(id string, book PriceBookID, s PriceBookSpec) Command {
	return Command{Op: OpPutSpec, Kind: KindPriceBookVersion, ID: id, Data: Encode(PriceBookVersionSpec{PriceBook: book, Prices: s})}
}

// NewPriceBook returns the stored spec of a new book, which is effective from the
// beginning of time.
func NewPriceBook(s PriceBookSpec) PriceBookSpec {
	s.EffectiveFrom, s.Version = time.Time{}, 1
	return s
}

// ChangedPriceBook returns the spec of a changed book, and further commands for the
// same batch, which store the version that was effective. A version that is not
// effective yet is replaced.
func ChangedPriceBook(book PriceBookID, old, s PriceBookSpec, now time.Time) (PriceBookSpec, []Command, error) {
	same := s
	same.EffectiveFrom, same.Version = old.EffectiveFrom, old.Version
	if bytes.Equal(Encode(same), Encode(old)) && (s.EffectiveFrom.IsZero() || s.EffectiveFrom.Equal(old.EffectiveFrom)) {
		return old, nil, nil
	}
	from, err := takesEffect("spec.effectiveFrom", s.EffectiveFrom, old.EffectiveFrom, now)
	if err != nil {
		return s, nil, err
	}
	s.EffectiveFrom, s.Version = from, old.Version
	if old.EffectiveFrom.After(now) { // the old version never took effect
		return s, nil, nil
	}
	s.Version++
	return s, []Command{keepVersion(PriceBookVersionID(book, old.Version), book, old)}, nil
}

// DeletedPriceBook returns the commands of the batch that deletes a book: its last
// version is kept to rate the usage in its period.
func DeletedPriceBook(book PriceBookID, s PriceBookSpec) []Command {
	return []Command{keepVersion(LastPriceBookVersionID(book), book, s)}
}

// Limits of an organization's past price books: assignments older than keepAssignments
// are dropped, and within that period there are at most maxAssignments.
const (
	maxAssignments  = 256
	keepAssignments = 800 * 24 * time.Hour
)

// AssignedPriceBook returns the organization's new spec with updated price book
// assignments, when its spec is changed from old to s at now.
func AssignedPriceBook(old, s OrganizationSpec, now time.Time) (OrganizationSpec, error) {
	s.PriceBookHistory = old.PriceBookHistory
	if s.PriceBook == old.PriceBook && (s.PriceBookFrom.IsZero() || s.PriceBookFrom.Equal(old.PriceBookFrom)) {
		s.PriceBookFrom = old.PriceBookFrom
		return s, nil
	}
	from, err := takesEffect("spec.priceBookFrom", s.PriceBookFrom, old.PriceBookFrom, now)
	if err != nil {
		return s, err
	}
	history := old.Assignments()
	for len(history) > 1 && !history[len(history)-1].From.Before(from) { // an assignment that has not taken effect is dropped
		history = history[:len(history)-1]
	}
	history = slices.Clone(history)
	for len(history) > 1 && history[1].From.Before(now.Add(-keepAssignments)) {
		history = history[1:]
	}
	if last := history[len(history)-1]; last.PriceBook == s.PriceBook {
		s.PriceBookFrom = last.From
	} else {
		if len(history) == maxAssignments {
			return s, invalid("spec.priceBook", "the price book has changed %d times since %s", maxAssignments-1, history[1].From.Format(time.DateOnly)).WithHint("change the book itself")
		}
		history = append(history, PriceBookAssignment{From: from, PriceBook: s.PriceBook})
		s.PriceBookFrom = from
	}
	if s.PriceBookHistory = history; len(history) == 1 && s.PriceBookFrom.IsZero() {
		s.PriceBookHistory = nil
	}
	return s, nil
}

// Assignments returns the organization's price books, the oldest first. Each is
// effective until the next begins, the first from the beginning of time.
func (s OrganizationSpec) Assignments() []PriceBookAssignment {
	if len(s.PriceBookHistory) > 0 {
		return s.PriceBookHistory
	}
	return []PriceBookAssignment{{PriceBook: s.PriceBook}}
}

// NewAssignment returns the spec of a new organization, whose price book is effective
// from the beginning of time.
func NewAssignment(s OrganizationSpec) OrganizationSpec {
	s.PriceBookFrom, s.PriceBookHistory = time.Time{}, nil
	return s
}
