package sds

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Orphans returns the volumes that may be swept: those that are not known and
// at least as old as young.
//
// List the volumes first and read the objects afterwards, linearizably: an
// object is stored before its volume is created, so a volume that was on the
// disk then and is in no object now has been deleted. The age covers
// exceptions from that order: a stale read, or a directory listing from a
// cache.
func Orphans(all []Volume, young time.Duration, known func(api.VolumeID) bool) []Volume {
	var orphans []Volume
	for _, v := range all {
		if v.Age >= young && !known(v.ID) {
			orphans = append(orphans, v)
		}
	}
	return orphans
}
