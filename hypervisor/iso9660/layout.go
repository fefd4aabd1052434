package iso9660

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

var (
	little = binary.LittleEndian
	big    = binary.BigEndian
)

// disc is the layout of a disc.
type disc struct {
	label          string
	at             time.Time
	dirs           []*node // in path table order
	files          []*node
	tableBytes     int
	tableL, tableM uint32
	total          uint32 // sectors
}

// assignSectors assigns sectors: descriptors, path tables, directories, files.
func (d *disc) assignSectors(root *node) {
	d.dirs = []*node{root}
	for i := 0; i < len(d.dirs); i++ { // level by level, as the path table requires
		n := d.dirs[i]
		n.number = i + 1
		for _, c := range n.children {
			switch {
			case c.dir():
				d.dirs = append(d.dirs, c)
			case c.size > 0:
				d.files = append(d.files, c)
			}
		}
	}
	for _, n := range d.dirs {
		d.tableBytes += 8 + even(len(tableName(n)))
	}
	next := uint32(systemArea + 2)
	take := func(n uint32) uint32 { at := next; next += n; return at }
	d.tableL = take(sectors(int64(d.tableBytes)))
	d.tableM = take(sectors(int64(d.tableBytes)))
	for _, n := range d.dirs {
		n.size = directorySize(n)
		n.extent = take(sectors(n.size))
	}
	for _, n := range d.files {
		n.extent = take(sectors(n.size))
	}
	d.total = next
}

// primary returns the primary volume descriptor: ECMA-119 section 8.4.
func (d *disc) primary() []byte {
	b := make([]byte, sector)
	b[0] = 1
	copy(b[1:], "CD001\x01")
	text(b[8:40], "LINUX")
	text(b[40:72], d.label)
	both32(b[80:], d.total)
	both16(b[120:], 1)
	both16(b[124:], 1)
	both16(b[128:], sector)
	both32(b[132:], uint32(d.tableBytes))
	little.PutUint32(b[140:], d.tableL)
	big.PutUint32(b[148:], d.tableM)
	copy(b[156:190], d.record(d.dirs[0], "\x00", nil))
	for _, f := range [][2]int{{190, 318}, {318, 446}, {446, 574}, {574, 702}, {702, 739}, {739, 776}, {776, 813}} {
		text(b[f[0]:f[1]], "")
	}
	stamp := d.at.Format("20060102150405") + "00\x00"
	copy(b[813:], stamp)
	copy(b[830:], stamp)
	copy(b[847:], "0000000000000000\x00") // does not expire
	copy(b[864:], stamp)
	b[881] = 1
	return b
}

// terminator returns the volume descriptor set terminator: section 8.3.
func terminator() []byte {
	b := make([]byte, sector)
	b[0] = 255
	copy(b[1:], "CD001\x01")
	return b
}

// pathTable returns a path table: section 9.4.
func (d *disc) pathTable(order binary.AppendByteOrder) []byte {
	var b []byte
	for _, n := range d.dirs {
		name, parent := tableName(n), 1
		if n.parent != nil {
			parent = n.parent.number
		}
		b = append(b, byte(len(name)), 0)
		b = order.AppendUint32(b, n.extent)
		b = order.AppendUint16(b, uint16(parent))
		b = append(b, name...)
		if len(name)%2 == 1 {
			b = append(b, 0)
		}
	}
	return b
}

func tableName(n *node) string {
	if n.parent == nil {
		return "\x00"
	}
	return fmt.Sprintf("D%07d", n.number)
}

// directory returns the extent of a directory: no record crosses a sector
// (section 6.8.1.1).
func (d *disc) directory(n *node) []byte {
	var b []byte
	for _, r := range d.records(n) {
		if room := sector - len(b)%sector; len(r) > room {
			b = append(b, make([]byte, room)...)
		}
		b = append(b, r...)
	}
	return append(b, make([]byte, pad(int64(len(b))))...)
}

func directorySize(n *node) int64 { return int64(len((&disc{}).directory(n))) }

func (d *disc) records(n *node) [][]byte {
	up := n
	if n.parent != nil {
		up = n.parent
	}
	dot := posix(n)
	if n.parent == nil {
		dot = append(append([]byte(sharing), dot...), reference...)
	}
	rs := [][]byte{d.record(n, "\x00", dot), d.record(up, "\x01", posix(up))}
	for i, c := range n.children {
		name := fmt.Sprintf("F%07d.;1", i)
		if c.dir() {
			name = fmt.Sprintf("F%07d", i)
		}
		rs = append(rs, d.record(c, name, append(append(posix(c), nameEntry(c.name)...), linkEntry(c.link)...)))
	}
	return rs
}

// record returns a directory record: section 9.1.
func (d *disc) record(n *node, name string, susp []byte) []byte {
	head := 33 + len(name)
	head += head % 2
	b := make([]byte, head, 255)
	both32(b[2:], n.extent)
	if !n.dir() && n.size == 0 {
		both32(b[2:], 0)
	}
	both32(b[10:], uint32(n.size))
	copy(b[18:], []byte{
		byte(d.at.Year() - 1900), byte(d.at.Month()), byte(d.at.Day()), byte(d.at.Hour()), byte(d.at.Minute()), byte(d.at.Second()), 0,
	})
	if n.dir() {
		b[25] = 2
	}
	both16(b[28:], 1)
	b[32] = byte(len(name))
	copy(b[33:], name)
	b = append(b, susp...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	b[0] = byte(len(b)) // at most 254: maxNames
	return b
}

// System use entries: SUSP 1.12 sections 5.3 and 5.5, RRIP 1.10 section 4.1.
const (
	sharing   = "SP\x07\x01\xbe\xef\x00"
	reference = "ER\x12\x01\x0a\x00\x00\x01RRIP_1991A"
)

// posix returns the PX entry: mode, links, owner and group (root).
func posix(n *node) []byte {
	b := append(make([]byte, 0, 36), 'P', 'X', 36, 1)
	links := uint32(1)
	if n.dir() {
		links = 2
	}
	for _, v := range []uint32{unixMode(n.mode), links, 0, 0} {
		b = append(b, make([]byte, 8)...)
		both32(b[len(b)-8:], v)
	}
	return b
}

func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	switch {
	case m.IsDir():
		return mode | 0o040000
	case m&fs.ModeSymlink != 0:
		return mode | 0o120000
	}
	return mode | 0o100000
}

// nameEntry returns the NM entry: the unchanged name.
func nameEntry(name string) []byte {
	return append([]byte{'N', 'M', byte(5 + len(name)), 1, 0}, name...)
}

// linkEntry returns the SL entry: the target, component by component.
func linkEntry(target string) []byte {
	if target == "" {
		return nil
	}
	var parts []byte
	rest := target
	if strings.HasPrefix(rest, "/") {
		parts, rest = append(parts, 8, 0), strings.TrimLeft(rest, "/")
	}
	for part := range strings.SplitSeq(rest, "/") {
		switch part {
		case "":
		case ".":
			parts = append(parts, 2, 0)
		case "..":
			parts = append(parts, 4, 0)
		default:
			parts = append(append(parts, 0, byte(len(part))), part...)
		}
	}
	return append([]byte{'S', 'L', byte(5 + len(parts)), 1, 0}, parts...)
}

func both16(b []byte, v uint16) {
	little.PutUint16(b, v)
	big.PutUint16(b[2:], v)
}

func both32(b []byte, v uint32) {
	little.PutUint32(b, v)
	big.PutUint32(b[4:], v)
}

func text(b []byte, s string) {
	for i := range b {
		b[i] = ' '
	}
	copy(b, s)
}

func even(n int) int { return n + n%2 }
