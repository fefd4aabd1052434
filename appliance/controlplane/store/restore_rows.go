package store

import (
	"bytes"
	"encoding/binary"
)

// rowRestorer takes usage records and their sums from a backup. The sums are
// made anew of the records first; then those of the backup take their place.
// They may have more, of records that were let go of, and never less.
type rowRestorer struct {
	format       int
	record, sum  []byte // the last keys
	made, wanted int64  // sums of the records that are there, and how many of those the backup had
}

func (r *rowRestorer) place(v view, kind byte, raw []byte) error {
	if r.format <= lastWithObjects {
		return badBackup("content of version %d has no usage records of this kind", r.format)
	}
	w, err := backupRow(raw)
	if err != nil {
		return err
	}
	if kind == recordSum {
		return r.placeSum(v, w)
	}
	if r.sum != nil || r.record != nil && bytes.Compare(w.key, r.record) <= 0 {
		return badBackup("a usage record is not in its place")
	}
	r.record = w.key
	t, err := takenOf(w, v.group.names)
	if err != nil {
		return badBackup("%v", err)
	}
	return v.applyRecords([]taken{t})
}

// backupRow reads the key and value of a row.
func backupRow(raw []byte) (row, error) {
	size, n := binary.Uvarint(raw)
	if n <= 0 || size > uint64(len(raw)-n) {
		return row{}, badBackup("a usage record cannot be read")
	}
	return row{raw[n : n+int(size)], raw[n+int(size):]}, nil
}

func (r *rowRestorer) placeSum(v view, w row) error {
	if r.sum == nil {
		if err := v.flush(); err != nil {
			return err
		}
		if err := v.tx.Bucket(bucketUse).ForEach(func(_, _ []byte) error { r.made++; return nil }); err != nil {
			return err
		}
	} else if bytes.Compare(w.key, r.sum) <= 0 {
		return badBackup("a sum of usage records is not in its place")
	}
	r.sum = w.key
	organization, rest, ok := bytes.Cut(w.key, zero)
	if !ok || len(organization) > maxNameBytes {
		return badBackup("a sum of usage records is nobody's")
	}
	of, err := decodeUseKey(rest, v.group.names)
	if err != nil {
		return badBackup("%v", err)
	}
	u, err := decodeUse(w.value, v.group.names)
	if err != nil {
		return badBackup("%v", err)
	}
	if made := v.tx.Bucket(bucketUse).Get(w.key); made != nil {
		m, err := decodeUse(made, v.group.names)
		if err != nil {
			return err
		}
		if r.wanted++; m.Quantity > u.Quantity {
			return badBackup("%s of %s is less than its usage records: %d, not %d", of.Meter, of.Resource, u.Quantity, m.Quantity)
		}
	}
	return v.tx.Bucket(bucketUse).Put(w.key, w.value)
}

// done reports whether every record was in a sum.
func (r *rowRestorer) done() error {
	if r.format > lastWithObjects && (r.record != nil && r.sum == nil || r.made != r.wanted) {
		return badBackup("there are usage records without a sum")
	}
	return nil
}
