package install

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
)

const (
	mib = 1 << 20
	gib = 1 << 30

	biosBytes = 1 * mib
	espBytes  = 512 * mib
	// Around the partitions: the first MiB, the copy of the partition table at the end,
	// and what remains free on disks that mirror each other, so that a new disk that is
	// a little smaller can replace one of them.
	aroundBytes = 2 * mib
	spareBytes  = 256 * mib

	// MinSeparate is the size of the smallest disk that is divided without a word in
	// the answers.
	MinSeparate = 64 * gib
	// minVolumes is the least that a divided disk has for images and volumes.
	minVolumes = 8 * gib
)

// FileSystem is a file system of the node, and its partition.
type FileSystem struct {
	Name      string // and of its array: "root"
	Partition int
	PartName  string
	Bytes     uint64 // of the partition, a multiple of 1 MiB; 0: the rest of the disk
	At        string // where it is mounted
}

// Layout divides a disk of that size, of two disks the smaller one. It is a pure
// function. The reason is empty if images and volumes, the state, and logs have file
// systems of their own; otherwise it explains why everything is in one.
//
//	root    an eighth of the disk, 16 to 32 GiB: the system and Debian's packages
//	state   a sixteenth, 8 to 64 GiB: the store, Raft's log, OVN, Ceph's monitor, packages of upgrades
//	logs    a thirty-second, 4 to 16 GiB: the journal and the logs of daemons
//	volumes the rest: images, volumes of the pool "local", caches of imports and backups
func Layout(disk uint64, want answers.FileSystems) (all []FileSystem, reason string) {
	root := FileSystem{Name: "root", Partition: 3, PartName: machine.PartitionRoot, At: "/"}
	sized := want.Root != 0 || want.State != 0 || want.Logs != 0
	switch {
	case want.One:
		return []FileSystem{root}, "the answers ask for one file system"
	case !sized && disk < MinSeparate:
		return []FileSystem{root}, "the disk has " + machine.Bytes(disk) + ", and separate file systems need " + machine.Bytes(MinSeparate)
	}
	choose := func(asked, share, least, most uint64) uint64 {
		if asked == 0 {
			asked = min(max(disk/share, least), most)
		}
		return asked / mib * mib
	}
	root.Bytes = choose(want.Root, 8, 16*gib, 32*gib)
	return []FileSystem{
		root,
		{"state", 4, machine.PartitionState, choose(want.State, 16, 8*gib, 64*gib), "/var/lib/basalt"},
		{"logs", 5, machine.PartitionLogs, choose(want.Logs, 32, 4*gib, 16*gib), "/var/log"},
		{"volumes", 6, machine.PartitionVolumes, 0, Volumes},
	}, ""
}

// Volumes is where the file system for images and volumes is mounted. Folders of it are
// bound to their places below /var/lib/basalt.
const Volumes = "/srv/basalt"

// rest returns what remains of the disk for the last file system, 0 if nothing does.
func rest(disk uint64, all []FileSystem, mirrored bool) uint64 {
	used := uint64(biosBytes + espBytes + aroundBytes)
	if mirrored {
		used += spareBytes
	}
	for _, f := range all {
		used += f.Bytes
	}
	if used >= disk {
		return 0
	}
	return (disk - used) / mib * mib
}

// checkLayout checks that the sizes in the answers fit on the disk, of two disks the
// smaller one.
func checkLayout(disk uint64, want answers.FileSystems, mirrored bool) error {
	all, reason := Layout(disk, want)
	if reason != "" {
		return nil
	}
	if left := rest(disk, all, mirrored); left < minVolumes {
		return api.Errorf(api.CodeInvalid, "the file systems root (%s), state (%s) and logs (%s) leave %s of the disk's %s for images and volumes, want %s or more",
			machine.Bytes(all[0].Bytes), machine.Bytes(all[1].Bytes), machine.Bytes(all[2].Bytes), machine.Bytes(left), machine.Bytes(disk), machine.Bytes(minVolumes)).
			At("storage.fileSystems").WithHint("write smaller sizes, or fileSystems: one")
	}
	return nil
}
