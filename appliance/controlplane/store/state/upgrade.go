package state

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// lastWithObjects is the last format in which usage records were objects.
const lastWithObjects = 4

// Prepare creates the buckets of a new file, and upgrades those of an older version. If
// it is interrupted, the next call continues. read and update run transactions, as
// those of bbolt.DB do.
func Prepare(read, update func(func(*bbolt.Tx) error) error) error {
	var format uint64
	err := read(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucketMeta); b != nil {
			format = number(b.Get(metaFormat))
		}
		return nil
	})
	if err != nil || format == tablesFormat {
		return err
	}
	if format != 0 && !knownFormat(format) {
		return fmt.Errorf("unknown format %d, this program supports %d", format, tablesFormat)
	}
	err = update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		next := uint64(lastWithObjects)
		if format == 0 {
			next = tablesFormat
		} else if format < 3 {
			if err := (View{tx: tx}).remakeUse(); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(metaFormat, be64(next))
	})
	for more := format != 0; more && err == nil; {
		err = update(func(tx *bbolt.Tx) error {
			if more, err = (View{tx: tx}).recordsToRows(); more || err != nil {
				return err
			}
			return tx.Bucket(bucketMeta).Put(metaFormat, be64(tablesFormat))
		})
	}
	return err
}

// upgradeBatch is how many records one transaction converts to rows.
const upgradeBatch = 10_000

// recordsToRows converts some usage records that are objects to rows. The sums of their
// hours include them already.
func (v View) recordsToRows() (more bool, err error) {
	var old []api.Object
	prefix := join(string(api.KindUsageRecord), "")
	c := v.tx.Bucket(bucketObjects).Cursor()
	for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(old) < upgradeBatch; k, raw = c.Next() {
		o, err := decodeObject(raw)
		if err != nil {
			return false, err
		}
		old = append(old, o)
	}
	for _, o := range old {
		if err := v.recordObject(o, false); err != nil {
			return false, err
		}
		if err := v.tx.Bucket(bucketNames).Delete(nameKey(o)); err != nil {
			return false, err
		}
		if err := v.displace(o); err != nil {
			return false, err
		}
	}
	return len(old) == upgradeBatch, nil
}

// remakeUse computes the sums of tables that have none, from records that are objects.
func (v View) remakeUse() error {
	if err := v.tx.DeleteBucket(bucketUse); err != nil {
		return err
	}
	if _, err := v.tx.CreateBucket(bucketUse); err != nil {
		return err
	}
	prefix := join(string(api.KindUsageRecord), "")
	c := v.tx.Bucket(bucketObjects).Cursor()
	for k, raw := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, raw = c.Next() {
		o, err := decodeObject(raw)
		if err != nil {
			return err
		}
		r, err := api.Decode[api.UsageRecord](o)
		if err != nil {
			return err
		}
		u, ok := api.UseOf(r)
		if !ok {
			continue
		}
		if err := v.addUse([]sumRow{{useKey(o.Meta.Organization, u), &u}}); err != nil {
			return err
		}
	}
	return nil
}
