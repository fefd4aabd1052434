package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// A usage record is a row:
//
//	organization, 0, end (uint64, ns since 1970), id
//	→ rowVersion, length of the period (uvarint, ns), when it was recorded (varint, ns after its end),
//	  quantity (uvarint), and length (uvarint) and bytes of meter, project, resource, its name, node
//
// One with attributes has attributedVersion, and after the node, in the same way,
// the attributes in the order of api.PriceSelector.Parts. The log and backups have
// the same bytes: a record is encoded once, by the leader.
const (
	rowVersion        = 1
	attributedVersion = 2
)

type row struct{ key, value []byte }

// rowOf returns the row of a record that api.RecordOf has accepted.
func rowOf(r api.UsageRecord) row {
	s := r.Spec
	v := make([]byte, 1, 96)
	parts := []string{string(s.Meter), r.Meta.Project, s.Resource, s.ResourceName, string(s.Node)}
	if v[0] = rowVersion; s.Attributes() != (api.PriceSelector{}) {
		v[0] = attributedVersion
		parts = append(parts, s.Attributes().Parts()...)
	}
	v = binary.AppendUvarint(v, uint64(s.End.UnixNano()-s.Start.UnixNano()))
	v = binary.AppendVarint(v, int64(nanos(r.Meta.CreatedAt))-s.End.UnixNano())
	v = binary.AppendUvarint(v, uint64(s.Quantity))
	for _, part := range parts {
		v = binary.AppendUvarint(v, uint64(len(part)))
		v = append(v, part...)
	}
	return row{rowKey(api.PlaceOf(r)), v}
}

func rowKey(p api.RecordPlace) []byte {
	k := make([]byte, 0, len(p.Organization)+9+len(p.ID))
	k = append(append(k, p.Organization...), 0)
	k = binary.BigEndian.AppendUint64(k, uint64(p.End.UnixNano()))
	return append(k, p.ID...)
}

// place decodes the key of a row.
func place(key []byte, names interned) (p api.RecordPlace, err error) {
	i := bytes.IndexByte(key, 0)
	if i < 0 || len(key) < i+10 || len(key) > i+9+maxNameBytes || i > maxNameBytes || bytes.IndexByte(key[i+9:], 0) >= 0 {
		return p, fmt.Errorf("key %q is not a key of a usage record", key)
	}
	ns := number(key[i+1 : i+9])
	if ns == 0 || ns > maxRowTime {
		return p, fmt.Errorf("a usage record ended %d ns after 1970", ns)
	}
	return api.RecordPlace{Organization: names.of(key[:i]), End: time.Unix(0, int64(ns)).UTC(), ID: string(key[i+9:])}, nil
}

// nanos returns the nanoseconds since 1970 at t, or the nearest that a row may have: a
// leader's clock may be wrong, and every log entry must stay readable.
func nanos(t time.Time) uint64 {
	switch {
	case t.Year() < 1970:
		return 0
	case t.Year() > 2200:
		return maxRowTime
	}
	return uint64(max(0, t.UnixNano()))
}

// maxRowTime is the end of 2200, in ns since 1970.
var maxRowTime = uint64(time.Date(2201, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

// record decodes a row. Encoding the result gives the same row again.
func (w row) record(names interned) (r api.UsageRecord, err error) {
	p, err := place(w.key, names)
	if err != nil {
		return r, err
	}
	d := rowReader{raw: w.value}
	version := d.byte()
	if version != rowVersion && version != attributedVersion {
		return r, fmt.Errorf("a usage record has version %d, this program supports up to %d", version, attributedVersion)
	}
	period, late, quantity := d.uvarint(), d.varint(), d.uvarint()
	r = api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: p.ID, Name: p.ID, Organization: p.Organization}}
	r.Spec = api.UsageRecordSpec{End: p.End, Meter: api.Meter(names.of(d.part()))}
	r.Meta.Project, r.Spec.Resource, r.Spec.ResourceName, r.Spec.Node = names.of(d.part()), names.of(d.part()), names.of(d.part()), api.NodeID(names.of(d.part()))
	if version == attributedVersion {
		var parts []string
		for range (api.PriceSelector{}).Parts() {
			parts = append(parts, names.of(d.part()))
		}
		a, _ := api.SelectorOf(parts) // there are as many
		r.Spec.SetAttributes(a)
		d.bad = d.bad || a == (api.PriceSelector{})
	}
	end := p.End.UnixNano()
	recorded := uint64(end + late) // which does not overflow: end is far from it
	if d.bad || len(d.raw) > 0 || period > uint64(end) || quantity > math.MaxInt64 || recorded > maxRowTime {
		return r, fmt.Errorf("the usage record %s cannot be decoded", p.ID)
	}
	r.Spec.Start, r.Spec.Quantity = time.Unix(0, end-int64(period)).UTC(), int64(quantity)
	r.Meta.CreatedAt = time.Unix(0, int64(recorded)).UTC()
	if _, ok := api.UseOf(r); !ok {
		return r, fmt.Errorf("usage record %s is not valid", p.ID)
	}
	return r, nil
}

// rowReader decodes data that may be damaged: bad reports whether it is.
type rowReader struct {
	raw []byte
	bad bool
}

func (d *rowReader) byte() byte {
	if d.bad = d.bad || len(d.raw) == 0; d.bad {
		return 0
	}
	b := d.raw[0]
	d.raw = d.raw[1:]
	return b
}

func (d *rowReader) uvarint() uint64 {
	n, size := binary.Uvarint(d.raw)
	return d.took(n, size)
}

func (d *rowReader) varint() int64 {
	n, size := binary.Varint(d.raw)
	return int64(d.took(uint64(n), size))
}

// took consumes a number of the given size. It refuses one that is cut off, too large, or
// longer than necessary.
func (d *rowReader) took(n uint64, size int) uint64 {
	if d.bad = d.bad || size <= 0 || size > 1 && d.raw[size-1] == 0; d.bad {
		return 0
	}
	d.raw = d.raw[size:]
	return n
}

func (d *rowReader) part() []byte {
	n := d.uvarint()
	if d.bad = d.bad || n > uint64(len(d.raw)); d.bad {
		return nil
	}
	part := d.raw[:n]
	d.raw = d.raw[n:]
	return part
}
