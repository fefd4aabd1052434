package drivertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// testScreen checks that a running machine has a screen that speaks VNC, for
// several viewers at once, until the machine ends.
func testScreen(t *testing.T, b *bench) {
	d := b.domain(t)
	_, err := b.Screen(b.ctx, d.ID)
	wantCode(t, "screen of a stopped domain", err, api.CodeState)
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	other, err := b.Screen(b.ctx, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	b.until(t, "the screen has a picture", func() bool {
		c, err := b.Screen(b.ctx, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		colors, err := CountColors(c)
		if err != nil {
			t.Fatal(err)
		}
		return colors > 1
	})
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, other); err != nil {
		t.Errorf("read the screen of a destroyed domain: %v, want EOF", err)
	}
	d.VNCSocket = ""
	if err := errors.Join(b.Define(b.ctx, d), b.Start(b.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	_, err = b.Screen(b.ctx, d.ID)
	wantCode(t, "screen of a domain without one", err, api.CodeState)
}

// CountColors returns the number of colors in one frame of a screen. It speaks VNC
// (RFC 6143) as a viewer that shares the screen, and requests the whole frame
// in raw pixels.
func CountColors(c io.ReadWriter) (int, error) {
	version := make([]byte, 12)
	if _, err := io.ReadFull(c, version); err != nil {
		return 0, err
	}
	if string(version) != "RFB 003.008\n" {
		return 0, fmt.Errorf("RFB version is %q, want 003.008", version)
	}
	kinds := make([]byte, 1)
	if err := exchange(c, version, kinds); err != nil {
		return 0, err
	}
	security := make([]byte, kinds[0])
	if _, err := io.ReadFull(c, security); err != nil {
		return 0, err
	}
	let := make([]byte, 4)
	if err := exchange(c, []byte{1}, let); err != nil { // security type none: access is limited by the socket's file mode
		return 0, err
	}
	hello := make([]byte, 24)
	if err := exchange(c, []byte{1}, hello); err != nil {
		return 0, err
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(hello[20:]))); err != nil { // its name
		return 0, err
	}
	wide, high, bits := binary.BigEndian.Uint16(hello), binary.BigEndian.Uint16(hello[2:]), hello[4]
	if binary.BigEndian.Uint32(let) != 0 || bits != 32 || wide == 0 || high == 0 {
		return 0, fmt.Errorf("security types %x, security result %x, server init %x; want security type none and 32-bit pixels", security, let, hello)
	}
	ask := append([]byte{2, 0, 0, 1, 0, 0, 0, 0}, 3, 0, 0, 0, 0, 0) // raw encoding only; the whole frame, from 0, 0
	ask = binary.BigEndian.AppendUint16(ask, wide)
	ask = binary.BigEndian.AppendUint16(ask, high)
	head := make([]byte, 4)
	if err := exchange(c, ask, head); err != nil {
		return 0, err
	}
	seen := map[uint32]bool{}
	for range binary.BigEndian.Uint16(head[2:]) {
		at := make([]byte, 12)
		if _, err := io.ReadFull(c, at); err != nil {
			return 0, err
		}
		line := make([]byte, 4*int(binary.BigEndian.Uint16(at[4:])))
		for range binary.BigEndian.Uint16(at[6:]) {
			if _, err := io.ReadFull(c, line); err != nil {
				return 0, err
			}
			for p := line; len(p) > 0; p = p[4:] {
				seen[binary.LittleEndian.Uint32(p)] = true
			}
		}
	}
	return len(seen), nil
}

func exchange(c io.ReadWriter, say, hear []byte) error {
	if _, err := c.Write(say); err != nil {
		return err
	}
	_, err := io.ReadFull(c, hear)
	return err
}
