package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Use is rolled up by the hour when a usage record is stored: an invoice of a month
// reads some hundred rows of a resource instead of all of its records, and finds them
// after the records have been deleted. A row holds the quantity, and the name that the
// resource had:
//
//	organization, 0, hour (uint64, hours since 1970), meter, 0, project, 0, resource,
//	and where it has attributes, each after a 0, in the order of api.PriceSelector.Parts
//	→ quantity (uint64), end of the record that names it (uint64, ns since 1970), name
//
// Keys sort in the order that tariff.Rater expects. Adding is commutative
// (api.Use.Plus): the order in which records come, or are added up, does not matter.

// sumRow is use that is added to a row.
type sumRow struct {
	key []byte
	use *api.Use
}

// addUse adds the use of new records to the rows, in the order of the keys.
func (v View) addUse(all []sumRow) error {
	slices.SortFunc(all, func(a, b sumRow) int { return bytes.Compare(a.key, b.key) })
	b, names := v.tx.Bucket(bucketUse), interned{}
	c := b.Cursor()
	for i := 0; i < len(all); {
		key, sum := all[i].key, *all[i].use
		for i++; i < len(all) && bytes.Equal(all[i].key, key); i++ {
			sum = sum.Plus(*all[i].use)
		}
		if k, raw := c.Seek(key); bytes.Equal(k, key) {
			before, err := decodeUse(raw, names)
			if err != nil {
				return fmt.Errorf("usage %q: %w", key, err)
			}
			sum = sum.Plus(before)
		}
		if err := b.Put(key, encodeUse(sum)); err != nil {
			return err
		}
	}
	return nil
}

// Use returns one page of an organization's use, in the order of the rows.
func (v View) Use(q api.UseQuery) (page api.UsePage, err error) {
	prefix := join(q.Organization, "")
	start := useKey(q.Organization, api.Use{Hour: q.From})[:len(prefix)+8]
	if (q.After != api.Use{}) {
		start = useKey(q.Organization, q.After)
	}
	names := interned{}
	page.Items = make([]api.Use, 0, min(q.Limit, 1000))
	c := v.tx.Bucket(bucketUse).Cursor()
	for k, raw := c.Seek(start); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		u, err := decodeUseKey(k[len(prefix):], names)
		if err != nil {
			return page, err
		}
		if !q.To.IsZero() && !u.Hour.Before(q.To) {
			break
		}
		if !q.Has(u) {
			continue
		}
		if len(page.Items) == q.Limit {
			page.More = true
			break
		}
		row, err := decodeUse(raw, names)
		if err != nil {
			return page, err
		}
		row.Hour, row.Meter, row.Project, row.Resource, row.Attributes = u.Hour, u.Meter, u.Project, u.Resource, u.Attributes
		page.Items = append(page.Items, row)
	}
	return page, nil
}

// useMarkLevel is the level from which a command is refused if its organization has used
// something since it was decided (api.Command.Used).
const useMarkLevel = 8

func (v View) marksUse() bool { return v.Level() >= useMarkLevel }

// usedFrom returns the mark of an organization's use. It reads every row of the
// organization from that hour on, which is usually the end of its last invoice. That is
// some 100,000 rows for a hundred resources in a month, and only when an organization
// is deleted or changes how it pays.
func (v View) usedFrom(organization string, from time.Time) (api.UseMark, error) {
	if err := v.flush(); err != nil { // the entries before this one count
		return api.UseMark{}, err
	}
	return v.storedUse(organization, from)
}

func (v View) storedUse(organization string, from time.Time) (api.UseMark, error) {
	m := api.UseMark{From: from}
	prefix := join(organization, "")
	names := interned{}
	c := v.tx.Bucket(bucketUse).Cursor()
	start := useKey(organization, api.Use{Hour: from})[:len(prefix)+8]
	for k, raw := c.Seek(start); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		u, err := decodeUse(raw, names)
		if err != nil {
			return m, fmt.Errorf("usage %q: %w", k, err)
		}
		m.Add(u)
	}
	return m, nil
}

// checkUse refuses the batch if an organization has used something since a command
// for it was decided.
func (t *txn) checkUse(all []api.Command) error {
	for _, c := range all {
		if c.Used == nil || !t.source.marksUse() {
			continue
		}
		now, err := t.source.usedFrom(c.ID, c.Used.From)
		if err != nil {
			return err
		}
		if refused := api.UsedSince(c, now); refused != nil {
			return refused
		}
	}
	return nil
}

func useKey(organization string, u api.Use) []byte {
	k := append([]byte(organization), 0)
	k = binary.BigEndian.AppendUint64(k, uint64(max(0, u.Hour.Unix())/3600))
	k = append(k, join(string(u.Meter), u.Project, u.Resource)...)
	if u.Attributes != (api.PriceSelector{}) {
		for _, part := range u.Attributes.Parts() {
			k = append(append(k, 0), part...)
		}
	}
	return k
}

// interned holds the strings of a page, each allocated once: every hour has the same
// ones.
type interned map[string]string

func (n interned) of(raw []byte) string {
	s, ok := n[string(raw)] // does not allocate
	if !ok {
		s = string(raw)
		n[s] = s
	}
	return s
}

// decodeUseKey decodes the part of a key that follows the organization.
func decodeUseKey(k []byte, names interned) (u api.Use, err error) {
	if len(k) < 8 {
		return u, fmt.Errorf("invalid key of usage: %d bytes", len(k))
	}
	hours := number(k[:8])
	meter, rest, ok := bytes.Cut(k[8:], zero)
	project, resource, ok2 := bytes.Cut(rest, zero)
	resource, attributes, attributed := bytes.Cut(resource, zero)
	u = api.Use{Hour: time.Unix(int64(hours)*3600, 0).UTC(), Meter: api.Meter(names.of(meter)), Project: names.of(project), Resource: names.of(resource)}
	if attributed {
		var parts []string
		for part := range bytes.SplitSeq(attributes, zero) {
			parts = append(parts, names.of(part))
		}
		var known bool
		u.Attributes, known = api.SelectorOf(parts)
		ok = ok && known && u.Attributes != (api.PriceSelector{})
	}
	if !ok || !ok2 || hours > maxHours {
		return u, fmt.Errorf("key %q is not a key of usage", k)
	}
	return u, nil
}

var zero = []byte{0}

// maxHours is the largest number of hours since 1970 that a row may have: some
// centuries, and no overflow.
const maxHours = 1 << 22

func encodeUse(u api.Use) []byte {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, 16+len(u.ResourceName)), uint64(u.Quantity))
	raw = binary.BigEndian.AppendUint64(raw, uint64(u.NamedAt.UnixNano()))
	return append(raw, u.ResourceName...)
}

func decodeUse(raw []byte, names interned) (u api.Use, err error) {
	if len(raw) < 16 || int64(number(raw[:8])) < 0 {
		return u, fmt.Errorf("invalid row of usage: %d bytes", len(raw))
	}
	return api.Use{Quantity: int64(number(raw[:8])), NamedAt: time.Unix(0, int64(number(raw[8:16]))).UTC(), ResourceName: names.of(raw[16:])}, nil
}
