package drivertest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

var (
	keyA = sds.Encryption{Passphrase: []byte("0f2ad6b1c9e84c3f9d6ba1e2f3041526")}
	keyB = sds.Encryption{Passphrase: []byte("9d1be0a2c3f84d5f8a7bc6d5e4f30219")}
)

func testEncryption(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	if !d.Capabilities().Encryption {
		t.Fatal("the driver lacks the capability Encryption: exclude this test for it")
	}
	c := newCanvas(t, b, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Encryption: &keyA})
	if v := c.volume(); !v.Source.Encrypted || v.SizeBytes != 4*mib {
		t.Errorf("encrypted volume = %+v, want an encrypted source and %d bytes", v, 4*mib)
	}
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	c.paint(1, 0x22)
	c.check("encrypted", false)
	for name, key := range map[string]*sds.Encryption{"no key": nil, "another key": &keyB} {
		if err := b.Disk.Holds(c.volume().Source, key, []byte{0x22}, areaBytes, areaBytes); err == nil {
			t.Errorf("reading the volume with %s = nil, want an error", name)
		}
	}
	c.grow(8*mib, nil)
	clone := c.clone("vol-2", "snap-1", 0)
	if v := clone.volume(); !v.Source.Encrypted {
		t.Errorf("clone of an encrypted volume = %+v, want an encrypted source", v)
	}
	clone.paint(2, 0x33)
	c.snap("snap-2", nil)
	m := c.start()
	c.by(m, 3, 0x44)
	c.snap("snap-3", m)
	c.by(m, 3, 0x55)
	c.drop("snap-2", m)
	c.grow(12*mib, m)
	m.Stop(t)
	c.check("live", false)
	clone.check("live", false)
	c.rollback("snap-3", 1)
	c.check("rolled back", false)
	if err := d.DeleteVolume(ctx, "vol-2"); err != nil {
		t.Errorf("DeleteVolume of vol-2: %v", err)
	}
	c.drop("snap-1", nil)
	c.drop("snap-3", nil)
	c.check("without snapshots", false)
	if err := d.DeleteVolume(ctx, "vol-1"); err != nil {
		t.Errorf("DeleteVolume of vol-1: %v", err)
	}
}

func testEncryptionRefused(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	if !d.Capabilities().Encryption {
		t.Fatal("the driver lacks the capability Encryption: exclude this test for it")
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 257), "sixteen letters\n..", "sixteen letters."} {
		_, err := d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-9", SizeBytes: mib, Encryption: &sds.Encryption{Passphrase: []byte(bad)}})
		wantCode(t, "a bad passphrase", err, api.CodeInvalid)
		if err != nil && len(bad) > 4 && strings.Contains(err.Error(), bad) {
			t.Errorf("the error contains the passphrase: %v", err)
		}
	}
	c := newCanvas(t, b, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib, Encryption: &keyA})
	c.paint(0, 0x11)
	c.snap("snap-1", nil)
	plain := blank(t, b, "vol-2")
	plain.snap("snap-1", nil)
	of := func(v api.VolumeID) sds.SnapshotRef { return sds.SnapshotRef{Volume: v, ID: "snap-1"} }
	for name, a := range map[string]sds.Access{"no key": {}, "another key": {Encryption: &keyB}} {
		_, err := d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-2", Volume: "vol-1"}, a)
		wantCode(t, name+": snapshot", err, api.CodeInvalid)
		_, err = d.RollbackVolume(ctx, "vol-1", "snap-1", 1, a)
		wantCode(t, name+": rollback", err, api.CodeInvalid)
		_, err = d.ResizeVolume(ctx, "vol-1", 8*mib, a)
		wantCode(t, name+": resize", err, api.CodeInvalid)
		_, err = d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-3", Snapshot: of("vol-1"), Encryption: a.Encryption})
		wantCode(t, name+": clone", err, api.CodeInvalid)
		c.check(name, false)
	}
	key := sds.Access{Encryption: &keyA}
	_, err := d.CreateSnapshot(ctx, sds.SnapshotCreate{ID: "snap-2", Volume: "vol-2"}, key)
	wantCode(t, "a key for an unencrypted volume", err, api.CodeInvalid)
	_, err = d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-3", Snapshot: of("vol-2"), Encryption: &keyA})
	wantCode(t, "an encrypted clone of an unencrypted volume", err, api.CodeInvalid)
	_, err = d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-1", SizeBytes: 4 * mib})
	wantCode(t, "the same, not encrypted", err, api.CodeExists)
	_, err = d.CreateVolume(ctx, sds.VolumeCreate{ID: "vol-2", SizeBytes: 4 * mib, Encryption: &keyA})
	wantCode(t, "the same, encrypted", err, api.CodeExists)
	plain.check("at the end", false)
}

// testEncryptedImage checks that a volume of an unencrypted image can be
// encrypted.
func testEncryptedImage(t *testing.T, b Bench) {
	ctx, d := t.Context(), b.Driver
	if !d.Capabilities().Encryption {
		t.Fatal("the driver lacks the capability Encryption: exclude this test for it")
	}
	raw := bytes.Repeat([]byte{0x77}, 2*mib)
	raw[510], raw[511] = 0x55, 0xAA
	if _, err := d.ImportImage(ctx, sds.ImageImport{ID: "img-1", Format: sds.Raw, Content: bytes.NewReader(raw)}); err != nil {
		t.Fatal(err)
	}
	ask := sds.VolumeCreate{ID: "vol-1", Image: "img-1", SizeBytes: 4 * mib, Encryption: &keyA}
	c := newCanvas(t, b, ask)
	c.now = picture{0, 0x77, 0x77, 0x77}
	c.paint(0, 0x11)
	c.check("from an image", false)
	c.snap("snap-1", nil)
	c.paint(2, 0x22)
	c.check("with a snapshot", false)
	c.rollback("snap-1", 1)
	c.drop("snap-1", nil)
	c.check("rolled back", false)
	ask.Epoch = 1
	c.anew(ask)
	c.now = picture{0, 0x77, 0x77, 0x77}
	c.paint(0, 0x12)
	c.check("recreated", false)
	ask = sds.VolumeCreate{ID: "vol-2", SizeBytes: 4 * mib, Encryption: &keyB, Standalone: true}
	two := newCanvas(t, b, ask)
	two.paint(0, 0x33)
	two.check("standalone", false)
}
