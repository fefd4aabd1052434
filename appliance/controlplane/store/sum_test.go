package store

import (
	"crypto/sha256"
	"fmt"

	"go.etcd.io/bbolt"
)

// sum is a digest of all that the state machine has, but for how far the log
// was applied: entries without commands move that, at other moments.
func (t *tables) sum() (string, error) {
	h := sha256.New()
	err := t.read(func(v view) error {
		return v.tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			fmt.Fprintf(h, "%q %d\n", name, b.Sequence())
			return b.ForEach(func(k, value []byte) error {
				if string(name) != "meta" || string(k) != "applied" {
					fmt.Fprintf(h, "%q %q\n", k, value)
				}
				return nil
			})
		})
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
