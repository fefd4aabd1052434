package storage

import (
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/xfsdisk"
)

// poolRecord is the stored record of a disk that this node has made a storage pool,
// or is about to. It is written before the disk is, and removed when the disk is
// released.
type poolRecord struct {
	Version int    `json:"version"` // 1
	Pool    string `json:"pool"`
	// Made is set when the file system is complete and marked. From then on the
	// disk is never formatted, whatever is found on it.
	Made bool `json:"made,omitempty"`
}

// poolView is the observed state of a disk that is, was or is to be a storage pool.
type poolView struct {
	spec    api.DiskSpec
	record  *poolRecord // nil if there is none
	block   *Block      // nil if the disk is missing
	content xfsdisk.Found
	mounted bool   // its file system is mounted in the pool's directory
	dead    error  // why the mounted file system cannot be read; nil if it can
	open    bool   // the driver is open
	volumes int    // number of volumes that are in the pool, or assigned to it
	failed  error  // error of the last step
	taken   string // the other disk of this node that is the pool of this name
}

// poolStep is the next step of a disk.
type poolStep string

// Steps; the process may be killed after each of them.
//
//	blank ─make─► whole ─mount─► mounted ─open─► open
//	       erase ◄─ unmount ◄─ close ◄─ released, and without volumes
const (
	poolNone    poolStep = ""
	poolMake    poolStep = "format"
	poolMount   poolStep = "mount"
	poolOpen    poolStep = "open"
	poolClose   poolStep = "close"
	poolUnmount poolStep = "unmount"
	poolErase   poolStep = "erase"
	poolForget  poolStep = "forget" // remove the record
)

// poolDecision is the status of a disk, and the step to perform.
type poolDecision struct {
	step   poolStep
	state  api.DiskState
	reason string
}

// nextPool decides the next step of a disk that is, was or is to be a storage pool.
func nextPool(v poolView) poolDecision {
	wanted := v.spec.Use == api.DiskLocal && (v.record == nil || v.record.Pool == v.spec.Pool)
	switch {
	case !wanted && v.record == nil:
		return poolDecision{poolNone, api.DiskFree, ""}
	case !wanted:
		return nextReleased(v)
	case v.taken != "":
		return poolDecision{poolNone, api.DiskFailed, "the node already has a storage pool of that name, on disk " + v.taken}
	}
	return nextWanted(v)
}

// nextWanted decides for a disk that is to be a pool.
func nextWanted(v poolView) poolDecision {
	made := v.record != nil && v.record.Made
	failed := func(why string) poolDecision { return poolDecision{poolNone, api.DiskFailed, why} }
	lost := func(why string) poolDecision { // its users get errors, and it is retried
		d := failed(why)
		if v.open {
			d.step = poolClose
		} else if v.mounted && v.failed == nil {
			d.step = poolUnmount
		}
		return d
	}
	switch {
	case v.block == nil:
		return lost("the disk was not found on its node")
	case v.dead != nil:
		return lost("its file system has failed: " + v.dead.Error())
	case v.failed != nil:
		return failed(v.failed.Error())
	case v.open:
		return poolDecision{poolNone, api.DiskReady, ""}
	case v.mounted:
		return poolDecision{poolOpen, api.DiskPreparing, "it is being opened"}
	case v.block.Held != "":
		return failed(v.block.Held)
	}
	switch v.content.Content {
	case xfsdisk.Whole:
		return poolDecision{poolMount, api.DiskPreparing, "it is being mounted"}
	case xfsdisk.Missing:
		return failed(v.content.What)
	case xfsdisk.Other:
		if made {
			return failed("the file system of the pool is no longer on it: " + v.content.What)
		}
		if !v.spec.Wipe && v.record == nil {
			return poolDecision{poolNone, api.DiskInUse, v.content.What + "; to erase it: release it, then use it with --wipe"}
		}
	case xfsdisk.Blank, xfsdisk.Begun:
		if made {
			return failed("the file system of the pool is no longer on it")
		}
	}
	return poolDecision{poolMake, api.DiskPreparing, "it is being formatted"}
}

// nextReleased decides for a disk that was a pool. Nothing is erased while a volume
// is on it.
func nextReleased(v poolView) poolDecision {
	draining := func(step poolStep, why string) poolDecision { return poolDecision{step, api.DiskDraining, why} }
	gone := v.block == nil || v.content.Content == xfsdisk.Missing
	switch {
	case gone || v.dead != nil || !v.record.Made || v.volumes == 0:
		return nextEmptied(v, gone)
	case v.failed != nil:
		return poolDecision{poolNone, api.DiskFailed, v.failed.Error()}
	case v.open:
		return draining(poolNone, fmt.Sprintf("it still has volumes (%d): delete them", v.volumes))
	case v.mounted:
		return draining(poolOpen, "it is being opened")
	case v.content.Content == xfsdisk.Whole:
		return draining(poolMount, "it is being mounted")
	}
	return nextEmptied(v, gone)
}

// nextEmptied decides for a disk that was a pool and has nothing that could be
// accessed.
func nextEmptied(v poolView, gone bool) poolDecision {
	draining := func(step poolStep, why string) poolDecision { return poolDecision{step, api.DiskDraining, why} }
	switch {
	case v.open:
		return draining(poolClose, "it is being closed")
	case v.mounted && v.failed != nil:
		return draining(poolNone, v.failed.Error())
	case v.mounted:
		return draining(poolUnmount, "it is being unmounted")
	case gone:
		return poolDecision{poolForget, api.DiskFailed, "the disk was not found on its node"}
	case v.failed != nil:
		return poolDecision{poolNone, api.DiskFailed, v.failed.Error()}
	case v.content.Content == xfsdisk.Whole || v.content.Content == xfsdisk.Begun:
		return draining(poolErase, "it is being erased")
	}
	return draining(poolForget, "it is being released")
}
