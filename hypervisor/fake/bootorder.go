package fake

import (
	"bytes"
	"io"
	"os"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// bootSource is what a machine boots from.
type bootSource int

const (
	fromDisk bootSource = iota
	fromMedium
	fromNothing
)

// bootsFrom returns what the firmware finds first. Files that do not exist are
// those of fakes of storage, which are bootable.
func bootsFrom(d hypervisor.Domain) bootSource {
	if d.Boot != nil || len(d.Drives) == 0 {
		return fromDisk
	}
	disk := len(d.Disks) > 0 && bootable(d.Disks[0].Path, 510, "\x55\xaa")
	// The boot record of El Torito is the second volume descriptor.
	medium := d.Drives[0].Medium != "" && bootable(d.Drives[0].Medium, 17*2048+7, "EL TORITO SPECIFICATION")
	switch {
	case medium && (d.BootMedium || !disk):
		return fromMedium
	case disk:
		return fromDisk
	}
	return fromNothing
}

// bootable reports whether the file has the mark at the offset.
func bootable(path string, at int64, mark string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }() // it was only read
	has := make([]byte, len(mark))
	_, err = io.ReadFull(io.NewSectionReader(f, at, int64(len(mark))), has)
	return err == nil && bytes.Equal(has, []byte(mark))
}
