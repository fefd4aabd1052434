package sds

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Orphans are the volumes that may be swept: those that nobody knows and that
// are older than young.
//
// List the volumes first and ask for the objects afterwards, linearizably: an
// object is stored before its volume is made, so what was on the disk then and
// is in no object now has been deleted. The age is for what breaks that order:
// a stale read, or a directory listing out of a cache.
func Orphans(all []Volume, young time.Duration, known func(api.VolumeID) bool) []Volume {
	var orphans []Volume
	for _, v := range all {
		if v.Age >= young && !known(v.ID) {
			orphans = append(orphans, v)
		}
	}
	return orphans
}
