package deploy

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"
)

// Keys of OSDs are created on their node, outside of the pure functions.
var (
	random = rand.Reader
	now    = time.Now
)

func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decode output of ceph: %w", err)
	}
	return nil
}
