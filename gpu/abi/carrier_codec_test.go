package abi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelloRoundTrip(t *testing.T) {
	in := Hello{Major: 1, Minor: 2, PID: 3, Name: "vecadd", Token: strings.Repeat("t", 64)}
	b := in.Append(nil)
	if len(b) != HelloSize {
		t.Fatalf("encoded hello has %d bytes, want %d", len(b), HelloSize)
	}
	if got, err := DecodeHello(b); err != nil || got != in {
		t.Fatalf("decoded hello = %+v, %v, want %+v", got, err, in)
	}
	if _, err := DecodeHello(b[1:]); !errors.Is(err, ErrMessage) {
		t.Fatalf("decode of a truncated hello = %v, want %v", err, ErrMessage)
	}
}

func TestRegionRules(t *testing.T) {
	good := Region{Size: 3 * PageSize, Extents: []Extent{{1, PageSize, 2 * PageSize}, {0, 0, PageSize}}}
	if got, err := DecodeRegion(0, good.Append(nil), 2); err != nil || cmp.Diff(good, got) != "" {
		t.Fatalf("decoded region = %+v, %v, want %+v", got, err, good)
	}
	for name, r := range map[string]Region{
		"no extents":         {Size: PageSize},
		"no size":            {Extents: []Extent{{0, 0, PageSize}}},
		"sum too small":      {Size: 2 * PageSize, Extents: []Extent{{0, 0, PageSize}}},
		"sum too big":        {Size: PageSize, Extents: []Extent{{0, 0, PageSize}, {0, 0, PageSize}}},
		"sum wraps":          {Size: PageSize, Extents: []Extent{{0, 0, 1<<64 - PageSize}, {0, 0, 2 * PageSize}}},
		"too big":            {Size: MaxRegionSize + PageSize, Extents: []Extent{{0, 0, MaxRegionSize + PageSize}}},
		"half a page":        {Size: PageSize, Extents: []Extent{{0, 0, 2048}, {0, 0, 2048}}},
		"offset in a page":   {Size: PageSize, Extents: []Extent{{0, 8, PageSize}}},
		"offset beyond all":  {Size: PageSize, Extents: []Extent{{0, 1 << 63, PageSize}}},
		"empty extent":       {Size: PageSize, Extents: []Extent{{0, 0, PageSize}, {0, 0, 0}}},
		"unknown descriptor": {Size: PageSize, Extents: []Extent{{2, 0, PageSize}}},
	} {
		if _, err := DecodeRegion(0, r.Append(nil), 2); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decode = %v, want %v", name, err, ErrMessage)
		}
	}
	b := good.Append(nil)
	if _, err := DecodeRegion(0, b[:len(b)-1], 2); !errors.Is(err, ErrMessage) {
		t.Errorf("decode of a truncated region = %v, want %v", err, ErrMessage)
	}
}

func TestPlacedRegion(t *testing.T) {
	good := Region{Size: PageSize, Placed: true, Address: 0x400000000000, Extents: []Extent{{0, 0, PageSize}}}
	if got, err := DecodeRegion(good.Flags(), good.Append(nil), 1); err != nil || cmp.Diff(good, got) != "" {
		t.Fatalf("decoded region = %+v, %v, want %+v", got, err, good)
	}
	if _, err := DecodeRegion(0, good.Append(nil), 1); !errors.Is(err, ErrMessage) {
		t.Errorf("decode of an address without the flag = %v, want %v", err, ErrMessage)
	}
	unplaced := Region{Size: PageSize, Extents: good.Extents}
	if _, err := DecodeRegion(RegionPlaced, unplaced.Append(nil), 1); !errors.Is(err, ErrMessage) {
		t.Errorf("decode of the flag without an address = %v, want %v", err, ErrMessage)
	}
	good.Address++
	if _, err := DecodeRegion(good.Flags(), good.Append(nil), 1); !errors.Is(err, ErrMessage) {
		t.Errorf("decode of an unaligned address = %v, want %v", err, ErrMessage)
	}
}

func TestCarrierHeaderRules(t *testing.T) {
	h := CarrierHeader{Type: MsgRegion, Flags: 2, Length: 3, Argument: 4}
	if got, err := DecodeCarrierHeader(h.Append(nil)); err != nil || got != h {
		t.Fatalf("decoded header = %+v, %v, want %+v", got, err, h)
	}
	long := CarrierHeader{Length: MaxCarrierBody + 1}.Append(nil)
	for name, b := range map[string][]byte{"short": long[:15], "long body": long, "magic": make([]byte, CarrierHeaderSize)} {
		if _, err := DecodeCarrierHeader(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decode = %v, want %v", name, err, ErrMessage)
		}
	}
}

func FuzzRegion(f *testing.F) {
	f.Add(Region{Size: 2 * PageSize, Extents: []Extent{{0, 0, PageSize}, {1, PageSize, PageSize}}}.Append(nil), 2)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, b []byte, fds int) {
		r, err := DecodeRegion(uint16(fds>>8), b, fds&0xff)
		fds &= 0xff
		if err != nil {
			return
		}
		var sum uint64
		for _, e := range r.Extents {
			sum += e.Length
			if int(e.FD) >= fds || e.Offset+e.Length < e.Offset {
				t.Errorf("DecodeRegion accepted extent %+v with %d descriptors", e, fds)
			}
		}
		if sum != r.Size || r.Size > MaxRegionSize {
			t.Errorf("DecodeRegion accepted size %d with extents of %d bytes", r.Size, sum)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(Hello{Major: 1, Name: "x"}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHello(b)
		if err != nil {
			return
		}
		if again, err := DecodeHello(h.Append(nil)); err != nil || again != h {
			t.Errorf("hello %+v was encoded and decoded as %+v, %v, want the same", h, again, err)
		}
	})
}
