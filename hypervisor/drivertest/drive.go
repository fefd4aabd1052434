package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// medium creates an installation medium for d: its boot program is Guest, which
// prints another greeting.
func medium(t *testing.T, d hypervisor.Domain, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(d.SerialLog), name+".iso")
	if err := os.WriteFile(path, elTorito(bytes.Replace(Guest, []byte("ready"), []byte("media"), 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// elTorito returns a disc that boots the sector without emulation ("El Torito"
// Bootable CD-ROM Format Specification 1.0). It has no files.
func elTorito(boot []byte) []byte {
	const block, catalog, program = 2048, 19, 20
	disc := make([]byte, 32*block)
	copy(disc[16*block:], "\x01CD001\x01")                        // primary volume descriptor
	copy(disc[17*block:], "\x00CD001\x01EL TORITO SPECIFICATION") // boot record
	binary.LittleEndian.PutUint32(disc[17*block+0x47:], catalog)
	copy(disc[18*block:], "\xffCD001\x01") // end of the descriptors
	entries := disc[catalog*block:]
	entries[0], entries[30], entries[31] = 1, 0x55, 0xaa // validation entry, for x86
	var sum uint16
	for i := 0; i < 32; i += 2 {
		sum += binary.LittleEndian.Uint16(entries[i:])
	}
	binary.LittleEndian.PutUint16(entries[28:], -sum)
	entries[32] = 0x88                             // bootable, no emulation
	binary.LittleEndian.PutUint16(entries[38:], 1) // sectors of 512 bytes
	binary.LittleEndian.PutUint32(entries[40:], program)
	copy(disc[program*block:], boot)
	return disc
}

// fromMedium returns whether the last boot of the domain was from its medium, and
// whether there was one.
func (b *bench) fromMedium(id api.InstanceID) (medium, any bool) {
	text, err := b.ConsoleLog(b.ctx, id, 4096)
	if err != nil {
		return false, false
	}
	last := func(greetings ...string) (at int) {
		for _, g := range greetings {
			at = max(at, bytes.LastIndex(text, []byte(g))+1)
		}
		return at
	}
	disk, disc := last("ready", "booted\r"), last("media", "booted from a medium")
	return disc > disk, disc+disk > 0
}

// wantBoot starts the domain, and checks what it boots from.
func (b *bench) wantBoot(t *testing.T, when string, d hypervisor.Domain, medium bool) {
	t.Helper()
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.SerialLog, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := errors.Join(b.Define(b.ctx, d), b.Start(b.ctx, d.ID)); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	b.until(t, when+": the guest has booted", func() bool {
		_, any := b.fromMedium(d.ID)
		return any
	})
	if got, _ := b.fromMedium(d.ID); got != medium {
		t.Errorf("%s: booted from the medium = %v, want %v", when, got, medium)
	}
}

// testDiskFirst checks the boot order: an empty disk is skipped, so that the
// medium boots, and one with a system is booted from unless the medium is to be.
func testDiskFirst(t *testing.T, b *bench) {
	d := b.domain(t)
	iso := medium(t, d, "installer")
	system := d.Disks[0]
	d.Disks = []hypervisor.Disk{extra(t, d, "empty")}
	d.Drives = []hypervisor.Drive{{Medium: iso}, {}}
	b.wantBoot(t, "with an empty disk", d, true)
	d.Disks = []hypervisor.Disk{system}
	b.wantBoot(t, "with a system", d, false)
	d.BootMedium = true
	b.wantBoot(t, "with a system, medium first", d, true)
	d.Drives[0].Medium = ""
	b.wantBoot(t, "with a system, medium first, without a medium", d, false)
}

// wantDrives checks the media in the drives of the machine, or of its definition
// if it does not run.
func (b *bench) wantDrives(t *testing.T, when string, id api.InstanceID, want ...string) {
	t.Helper()
	all, err := b.Drives(b.ctx, id)
	got := []string{}
	for _, v := range all {
		got = append(got, v.Medium)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: media = %q, %v, want %q", when, got, err, want)
	}
}

// testMedia checks that media are inserted and ejected while a machine runs and
// while it does not, and that they are only read.
func testMedia(t *testing.T, b *bench) {
	d := b.domain(t)
	first, second := medium(t, d, "first"), medium(t, d, "second")
	b.wantDrives(t, "without drives", d.ID)
	wantCode(t, "insert without drives", b.SetMedium(b.ctx, d.ID, 0, first), api.CodeState)
	d.Drives = []hypervisor.Drive{{Medium: first}, {}}
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	twice(t, "insert while stopped", func() error { return b.SetMedium(b.ctx, d.ID, 1, second) })
	b.wantDrives(t, "while stopped", d.ID, first, second)
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the guest has booted", func() bool { return b.boots(d.ID) > 0 })
	b.wantDrives(t, "after the start", d.ID, first, second)
	twice(t, "eject", func() error { return b.SetMedium(b.ctx, d.ID, 0, "") })
	b.wantDrives(t, "after an eject", d.ID, "", second)
	twice(t, "exchange", func() error { return b.SetMedium(b.ctx, d.ID, 1, first) })
	twice(t, "insert", func() error { return b.SetMedium(b.ctx, d.ID, 0, second) })
	b.wantDrives(t, "after an exchange", d.ID, second, first)
	if s, err := b.Status(b.ctx, d.ID); err != nil || s.State != hypervisor.Running {
		t.Errorf("Status after changes of media = %+v, %v, want Running", s, err)
	}
	b.wantDisks(t, "with media", d.ID, "root")
	b.restart(t, d.ID)
	b.wantDrives(t, "after a restart", d.ID, second, first)
	wantCode(t, "insert into a third drive", b.SetMedium(b.ctx, d.ID, 2, first), api.CodeInvalid)
	wantCode(t, "insert of a relative path", b.SetMedium(b.ctx, d.ID, 0, "first.iso"), api.CodeInvalid)
	wantCode(t, "insert into a missing domain", b.SetMedium(b.ctx, "ins-000000000000", 0, first), api.CodeNotFound)
	if err := b.SetMedium(b.ctx, d.ID, 0, filepath.Join(filepath.Dir(first), "missing.iso")); b.Slow && err == nil {
		t.Error("insert of a file that does not exist = nil, want an error")
	}
	b.twoReaders(t, d, first)
}

// twoReaders checks that a second machine has the same medium, which no machine
// can write to.
func (b *bench) twoReaders(t *testing.T, d hypervisor.Domain, iso string) {
	t.Helper()
	before, err := os.ReadFile(iso)
	if err != nil {
		t.Fatal(err)
	}
	other := b.domain(t)
	other.Drives = []hypervisor.Drive{{Medium: iso}}
	b.wantBoot(t, "a second machine with the medium", other, false)
	b.wantDrives(t, "of the second machine", other.ID, iso)
	if err := errors.Join(b.Destroy(b.ctx, other.ID), b.Destroy(b.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(iso); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the medium has changed: %v, %d bytes, want the %d bytes that were written", err, len(after), len(before))
	}
}

// testMovedMedia checks that a migrated machine has its media in the same drives,
// from the target's files, and that they are changed there.
func testMovedMedia(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	src.Drives = []hypervisor.Drive{{}, {Medium: medium(t, src, "disc")}}
	dst.Drives = []hypervisor.Drive{{}, {Medium: medium(t, dst, "disc")}}
	if err := p.from.Define(p.ctx, src); err != nil {
		t.Fatal(err)
	}
	p.source.restart(t, src.ID)
	p.prepare(t, dst)
	if _, err := p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{Target: dst, Tunnel: p.tunnel(t, src.ID)}); err != nil {
		t.Fatal(err)
	}
	p.target.wantDrives(t, "on the target", dst.ID, "", dst.Drives[1].Medium)
	twice(t, "eject on the target", func() error { return p.to.SetMedium(p.ctx, dst.ID, 1, "") })
	p.wantMoved(t, src.ID)
	p.target.wantDrives(t, "after a restart there", dst.ID, "", "")
}
