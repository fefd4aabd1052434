package api

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"time"
)

// Prices never change what was used before: a change of a price book makes a new
// version, and a change of an organization's price book an assignment, each from a
// full hour on that has not begun. Use is known by the hour.

// nextHour is the first full hour that has not begun before now.
func nextHour(now time.Time) time.Time {
	h := now.UTC().Truncate(time.Hour)
	if h.Before(now) {
		h = h.Add(time.Hour)
	}
	return h
}

// takesEffect is from when a change holds that was asked for from a moment on: had
// is what the object says now, which a reader sends back with what he changes.
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

// PriceBookVersion is a version of a price book that has held and does no more. It
// never changes, and stays when the book is deleted: what was used while it held
// costs what it says.
type PriceBookVersion struct {
	Kind Kind
	Meta Meta
	Spec PriceBookVersionSpec
}

// PriceBookVersionSpec is the book as it was.
type PriceBookVersionSpec struct {
	PriceBook PriceBookID   `json:"priceBook"`
	Prices    PriceBookSpec `json:"prices"`
}

// PriceBookVersionID is where a version of a book is kept.
func PriceBookVersionID(book PriceBookID, version int64) string {
	sum := sha256.Sum256([]byte("price book version\x00" + string(book) + "\x00" + strconv.FormatInt(version, 10)))
	return NewID(KindPriceBookVersion, sum[:])
}

// LastPriceBookVersionID is where the last version of a deleted book is kept.
func LastPriceBookVersionID(book PriceBookID) string { return PriceBookVersionID(book, -1) }

// keepVersion is the command that keeps a version.
func keepVersion(id string, book PriceBookID, s PriceBookSpec) Command {
	return Command{Op: OpPutSpec, Kind: KindPriceBookVersion, ID: id, Data: Encode(PriceBookVersionSpec{PriceBook: book, Prices: s})}
}

// NewPriceBook is a new book's spec as it is stored: it has always held.
func NewPriceBook(s PriceBookSpec) PriceBookSpec {
	s.EffectiveFrom, s.Version = time.Time{}, 1
	return s
}

// ChangedPriceBook is the spec that a book has when it is changed, and the commands
// of the same batch: they keep the version that has held. A version that has not come
// into force yet is replaced.
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
	if old.EffectiveFrom.After(now) { // it has not held
		return s, nil, nil
	}
	s.Version++
	return s, []Command{keepVersion(PriceBookVersionID(book, old.Version), book, old)}, nil
}

// DeletedPriceBook is the commands of the batch that deletes a book: its last
// version stays for what was used while it held.
func DeletedPriceBook(book PriceBookID, s PriceBookSpec) []Command {
	return []Command{keepVersion(LastPriceBookVersionID(book), book, s)}
}

// Limits of how many price books an organization may have had: those of before
// keepAssignments are forgotten, and within that time it has no more.
const (
	maxAssignments  = 256
	keepAssignments = 800 * 24 * time.Hour
)

// AssignedPriceBook is an organization's spec with the dates from which it pays by
// its price books, when the spec that it had is changed at a time.
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
	for len(history) > 1 && !history[len(history)-1].From.Before(from) { // what has not come into force does not
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

// Assignments are the price books that an organization pays by, from the oldest:
// each until the next begins, the first since ever.
func (s OrganizationSpec) Assignments() []PriceBookAssignment {
	if len(s.PriceBookHistory) > 0 {
		return s.PriceBookHistory
	}
	return []PriceBookAssignment{{PriceBook: s.PriceBook}}
}

// NewAssignment is the spec of an organization that pays by its price book from the
// beginning.
func NewAssignment(s OrganizationSpec) OrganizationSpec {
	s.PriceBookFrom, s.PriceBookHistory = time.Time{}, nil
	return s
}
