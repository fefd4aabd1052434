package answers

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// EraseAnything is the value of erase that allows any disk that the rules find.
const EraseAnything = "yes-everything-on-it"

// Disk is a rule that must match exactly one disk.
type Disk struct {
	ByID   string // name under /dev/disk/by-id
	Serial string
	Size   Size
	Only   bool // the only eligible disk
}

// Size is a range in bytes; Max 0 means no upper limit.
type Size struct{ Min, Max uint64 }

// FileSystems is how the disk is divided. The zero value leaves it to the installer
// (package install, Layout).
type FileSystems struct {
	One bool // everything in one file system
	// Sizes in bytes; 0: the installer's. The remainder is for images and volumes.
	Root, State, Logs uint64
}

// Smallest sizes of file systems that an answer file may set, in bytes.
const (
	MinRoot  = 8 << 30
	MinState = 4 << 30
	MinLogs  = 1 << 30
)

// MayErase reports whether the answers allow erasing the disk with that serial.
func (a Answers) MayErase(serial string) bool {
	return slices.Contains(a.Erase, EraseAnything) || serial != "" && slices.Contains(a.Erase, serial)
}

const eraseForm = "write the serial of each disk, or " + EraseAnything

// erase reads one serial, or a list of them.
func (r *reader) erase(n *yaml.Node, at string) (serials []string) {
	one := func(n *yaml.Node, at string) {
		if s, ok := r.Text(n, at, eraseForm); ok {
			serials = append(serials, s)
		}
	}
	if n.Kind == yaml.SequenceNode {
		r.Each(n, at, 2, one)
		if len(n.Content) == 0 {
			r.Wrong(n, at, eraseForm, "names no disk")
		}
		return serials
	}
	one(n, at)
	return serials
}

// erasable reports serials that the rules name and erase does not allow.
func (r *reader) erasable(n *yaml.Node, a *Answers) {
	rules := []struct {
		field string
		disk  *Disk
	}{{"disk", &a.Disk}, {"mirror", a.Mirror}}
	for _, rule := range rules {
		if rule.disk != nil && rule.disk.Serial != "" && len(a.Erase) > 0 && !a.MayErase(rule.disk.Serial) {
			r.Wrong(n, "erase", "write "+strictyaml.Clip(rule.disk.Serial)+", or "+EraseAnything,
				"%q is not the serial in %s.serial", strictyaml.Clip(strings.Join(a.Erase, ", ")), rule.field)
		}
	}
}

// sameDisk reports whether both rules name the same disk.
func sameDisk(a, b Disk) bool {
	return a.Serial != "" && a.Serial == b.Serial || a.ByID != "" && a.ByID == b.ByID
}

func (r *reader) disk(n *yaml.Node, at string, d *Disk) {
	instead := "write " + at + ": only, or one of serial:, byId:, size: below it"
	if n.Kind == yaml.ScalarNode {
		if n.Value != "only" {
			r.Wrong(n, at, instead, "%q names no disk", strictyaml.Clip(n.Value))
		}
		d.Only = true
		return
	}
	ok := r.Mapping(n, at,
		strictyaml.Field{Name: "only", Read: func(n *yaml.Node, at string) {
			if d.Only = r.Flag(n, at); !d.Only {
				r.Wrong(n, at, instead, "false names no disk")
			}
		}},
		strictyaml.Field{Name: "byId", Read: func(n *yaml.Node, at string) {
			d.ByID, _ = r.Text(n, at, "write a name from /dev/disk/by-id")
			d.ByID = strings.TrimPrefix(d.ByID, "/dev/disk/by-id/")
			if strings.Contains(d.ByID, "/") {
				r.Wrong(n, at, "write a name from /dev/disk/by-id; /dev/sdX may be another disk after each start", "%q is not a name under /dev/disk/by-id", strictyaml.Clip(d.ByID))
			}
		}},
		strictyaml.Field{Name: "serial", Read: func(n *yaml.Node, at string) {
			d.Serial, _ = r.Text(n, at, "write the serial that is printed on the disk")
		}},
		strictyaml.Field{Name: "size", Read: func(n *yaml.Node, at string) {
			if s, ok := r.Text(n, at, sizeForm); ok {
				size, err := ParseSize(s)
				d.Size = size
				r.because(n, at, err)
			}
		}},
	)
	if ok && len(n.Content) != 2 {
		r.Wrong(n, at, instead, "needs exactly one rule and has %d", len(n.Content)/2)
	}
}

const fileSystemsForm = "write fileSystems: one, or sizes: fileSystems: {root: 32GiB, state: 16GiB, logs: 8GiB}"

func (r *reader) fileSystems(n *yaml.Node, at string, f *FileSystems) {
	if n.Kind == yaml.ScalarNode {
		if f.One = n.Value == "one"; !f.One {
			r.Wrong(n, at, fileSystemsForm, "%q is not a division of a disk", strictyaml.Clip(n.Value))
		}
		return
	}
	size := func(to *uint64, least uint64) func(*yaml.Node, string) {
		return func(n *yaml.Node, at string) {
			s, ok := r.Text(n, at, fileSystemsForm)
			if !ok {
				return
			}
			bytes, err := parseBytes(s)
			if err == nil && bytes < least {
				err = bad("write "+strconv.FormatUint(least>>30, 10)+"GiB or more", "%q is too small", strictyaml.Clip(s))
			}
			*to = bytes
			r.because(n, at, err)
		}
	}
	r.Mapping(n, at,
		strictyaml.Field{Name: "root", Read: size(&f.Root, MinRoot)},
		strictyaml.Field{Name: "state", Read: size(&f.State, MinState)},
		strictyaml.Field{Name: "logs", Read: size(&f.Logs, MinLogs)},
	)
}

// parseBytes parses a size with a unit.
func parseBytes(s string) (uint64, error) {
	m := sizeNumber.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, bad("write a size such as 32GiB", "%q is not a size with a unit", strictyaml.Clip(s))
	}
	f, _ := strconv.ParseFloat(m[1]+m[2], 64)
	return uint64(math.Round(f * units[m[3]])), nil
}
