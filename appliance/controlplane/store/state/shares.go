package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// Events for webhooks are limited fairly: when there are too many, the organization
// that has the most loses its oldest. How many each has, and how many it has lost, is
// stored in a bucket of its own, which the first event of level 8 builds from the
// existing events.
//
//	n organization        → how many events it has
//	r number organization → nothing: the organizations, ordered by how many they have
//	d organization        → how many were dropped for this reason
var bucketEventShares = []byte("events-shares")

const (
	sharesLevel = 8

	shareDropped = "d"
	shareNumber  = "n"
	shareRank    = "r" // sorts after the others
)

// shares gives access to that bucket; the zero value, before level 8, stores nothing.
type shares struct {
	b    *bbolt.Bucket
	orgs *bbolt.Bucket // maps organizations to their events
}

// shares returns the shares, and creates their bucket if it is missing. It must be called
// before an event is written.
func (v View) shares() (shares, error) {
	if v.Level() < sharesLevel {
		return shares{}, nil
	}
	s := shares{v.tx.Bucket(bucketEventShares), v.tx.Bucket(bucketEventOrg)}
	if s.b != nil {
		return s, nil
	}
	var err error
	if s.b, err = v.tx.CreateBucket(bucketEventShares); err != nil {
		return s, err
	}
	counts := map[string]int64{}
	if err := s.orgs.ForEach(func(k, _ []byte) error { counts[string(k[:len(k)-9])]++; return nil }); err != nil { // zero byte, sequence
		return s, err
	}
	for _, organization := range slices.Sorted(maps.Keys(counts)) {
		if err := s.add(organization, counts[organization]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// number returns the number that a row holds, or 0.
func (s shares) number(what, organization string) int64 {
	return int64(number(s.b.Get([]byte(what + organization))))
}

func rankKey(n int64, organization string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(shareRank), uint64(n)), organization...)
}

// add changes how many events the organization has.
func (s shares) add(organization string, n int64) error {
	if s.b == nil || n == 0 {
		return nil
	}
	was := s.number(shareNumber, organization)
	if err := s.b.Delete(rankKey(was, organization)); err != nil {
		return err
	}
	if was += n; was == 0 {
		return s.b.Delete([]byte(shareNumber + organization))
	}
	if err := s.b.Put(rankKey(was, organization), nil); err != nil {
		return err
	}
	return s.b.Put([]byte(shareNumber+organization), be64(uint64(was)))
}

// most returns the organization that has the most events, and the key of its oldest;
// before level 8 it returns its arguments.
func (s shares) most(organization string, oldest []byte) (string, []byte, error) {
	if s.b == nil {
		return organization, oldest, nil
	}
	k, _ := s.b.Cursor().Last()
	if len(k) < 9 || string(k[:1]) != shareRank {
		return "", nil, errors.New("the events' shares are damaged: no organization has any")
	}
	organization = string(k[9:])
	prefix := join(organization, "")
	oldest, _ = s.orgs.Cursor().Seek(prefix)
	if len(oldest) != len(prefix)+8 || string(oldest[:len(prefix)]) != string(prefix) {
		return "", nil, fmt.Errorf("the events' shares are damaged: organization %q has none", organization)
	}
	return organization, oldest[len(prefix):], nil
}

// drop counts an event of the organization that is dropped before its time.
func (s shares) drop(organization string) error {
	if s.b == nil {
		return nil
	}
	return s.b.Put([]byte(shareDropped+organization), be64(uint64(s.number(shareDropped, organization)+1)))
}

// dropped returns how many events the organization has lost this way, or all of them if
// organization is empty.
func (v View) dropped(organization string) (n int64) {
	b := v.tx.Bucket(bucketEventShares)
	if b == nil {
		return 0
	}
	if organization != "" {
		return shares{b: b}.number(shareDropped, organization)
	}
	c := b.Cursor()
	for k, raw := c.Seek([]byte(shareDropped)); len(k) > 0 && string(k[:1]) == shareDropped; k, raw = c.Next() {
		n += int64(number(raw))
	}
	return n
}
