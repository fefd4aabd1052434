package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"go.etcd.io/bbolt"
)

// comparedVersion is the first byte of an entry at which nodes compare their tables
// (Compare of the store); a Place in JSON follows. It is written from CompareLevel on.
const (
	comparedVersion = 13
	CompareLevel    = 7
)

// PartBytes is how many bytes of keys and values are compared at a time.
const PartBytes = 8 << 20

// Place is where a part begins. The zero Place is the beginning of the tables, and also
// follows their end.
type Place struct {
	Bucket string `json:"bucket,omitempty"`
	Key    []byte `json:"key,omitempty"`
}

func (p Place) String() string {
	if p.Bucket == "" {
		return "the beginning"
	}
	return fmt.Sprintf("%s %q", p.Bucket, p.Key)
}

// Compare returns -1, 0 or 1 if p is before, at or after q.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Bucket, q.Bucket), bytes.Compare(p.Key, q.Key))
}

// Part is the digest of a part of a node's tables, at an entry of the log.
type Part struct {
	Index uint64 `json:"index"`
	From  Place  `json:"from"`
	Next  Place  `json:"next"` // where the next part begins
	Bytes int64  `json:"bytes"`
	Sum   []byte `json:"sum"` // SHA-256
}

// EncodeCompare returns an entry at which all nodes compute the digest of the part that
// begins at from.
func EncodeCompare(from Place) ([]byte, error) {
	raw, err := json.Marshal(from)
	return append([]byte{comparedVersion}, raw...), err
}

// Comparison reports whether an entry is a comparison, and returns where its part begins.
func Comparison(entry []byte) (from Place, ok bool) {
	if entry[0] != comparedVersion {
		return from, false
	}
	from, err := DecodePlace(entry[1:])
	return from, err == nil
}

// DecodePlace decodes the JSON of a Place.
func DecodePlace(raw []byte) (p Place, err error) {
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("decode log entry: %w", err)
	}
	return p, nil
}

// Part returns the digest of what is stored from a place on, up to limit bytes or the
// end of the tables. An empty bucket, which another release may not have, does not
// count, and neither does the format of the file.
func (v View) Part(index uint64, from Place, limit int64) Part {
	p := Part{Index: index, From: from}
	h := sha256.New()
	write := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
		p.Bytes += int64(len(b))
	}
	_ = v.tx.ForEach(func(name []byte, b *bbolt.Bucket) error { // stops when the part is full
		if string(name) < from.Bucket {
			return nil
		}
		c := b.Cursor()
		k, value := c.First()
		if string(name) == from.Bucket {
			k, value = c.Seek(from.Key)
		} else if n := b.Sequence(); n != 0 {
			write(name)
			write(be64(n))
		}
		for ; k != nil; k, value = c.Next() {
			if bytes.Equal(name, bucketMeta) && bytes.Equal(k, metaFormat) {
				continue
			}
			if p.Bytes >= limit {
				p.Next = Place{string(name), bytes.Clone(k)}
				return errFull
			}
			write(name)
			write(k)
			write(value)
		}
		return nil
	})
	p.Sum = h.Sum(nil)
	return p
}

var errFull = errors.New("the part is full")

// Differing returns the nodes whose part differs from the one that the majority has;
// agreed reports whether there is such a majority.
func Differing(all map[string]Part) (nodes []string, agreed bool) {
	count := map[string]int{}
	for _, p := range all {
		count[string(p.Sum)]++
	}
	for sum, n := range count {
		if 2*n <= len(all) {
			continue
		}
		for id, p := range all {
			if string(p.Sum) != sum {
				nodes = append(nodes, id)
			}
		}
		return nodes, true
	}
	return nil, false
}

// Digests returns the SHA-256 digests of the contents of the buckets, by the buckets'
// names; an empty bucket has none. What belongs to the file and not to the state does
// not count.
func (v View) Digests() (map[string][sha256.Size]byte, error) {
	sums := map[string][sha256.Size]byte{}
	err := v.tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		h, n := sha256.New(), 0
		addSum(h, be64(b.Sequence()))
		err := b.ForEach(func(k, value []byte) error {
			if string(name) == string(bucketMeta) && (string(k) == string(metaApplied) || string(k) == string(metaFormat)) {
				return nil
			}
			n++
			addSum(h, k)
			addSum(h, value)
			return nil
		})
		if n > 0 || b.Sequence() > 0 {
			sums[string(name)] = [sha256.Size]byte(h.Sum(nil))
		}
		return err
	})
	return sums, err
}

// addSum writes b to h, preceded by its length.
func addSum(h hash.Hash, b []byte) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.Write(b)
}
