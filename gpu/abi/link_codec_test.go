package abi

import (
	"errors"
	"reflect"
	"testing"
)

func linkSample() *LinkImage {
	return &LinkImage{OptLevel: 3, MaxRegisters: 32, Objects: []LinkObject{
		{Type: 1, Name: "a", Image: []byte("first")}, {Type: 2, Name: "second object", Image: []byte{}}, {Type: 0, Name: "c", Image: make([]byte, 8)},
	}}
}

func TestLinkImage(t *testing.T) {
	want := linkSample()
	b := want.Append(nil)
	if !IsLinkImage(b) || len(b)%8 != 0 {
		t.Fatalf("encoded image = %x, want the magic and a multiple of 8 bytes", b)
	}
	got, err := DecodeLinkImage(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, %v; want %+v", got, err, want)
	}
}

func TestLinkImageRefused(t *testing.T) {
	for name, change := range map[string]func(b []byte) []byte{
		"cut off":          func(b []byte) []byte { return b[:len(b)-8] },
		"only the magic":   func(b []byte) []byte { return b[:4] },
		"another version":  func(b []byte) []byte { b[4] = 2; return b },
		"another size":     func(b []byte) []byte { b[8]++; return b },
		"no objects":       func(b []byte) []byte { b[16] = 0; return b },
		"too many objects": func(b []byte) []byte { b[18] = 1; return b },
		"one more object":  func(b []byte) []byte { b[16]++; return b },
		"one less":         func(b []byte) []byte { b[16]--; return b },
		"no name":          func(b []byte) []byte { b[36] = 0; return b },
		"name too long":    func(b []byte) []byte { b[38] = 1; return b },
		"image too long":   func(b []byte) []byte { b[47] = 0xff; return b },
	} {
		if l, err := DecodeLinkImage(change(linkSample().Append(nil))); !errors.Is(err, ErrInvalidImage) {
			t.Errorf("%s: %+v, %v; want %v", name, l, err, ErrInvalidImage)
		}
	}
}

func FuzzLinkImage(f *testing.F) {
	f.Add(linkSample().Append(nil))
	f.Add((&LinkImage{Objects: []LinkObject{{Name: "x\n"}}}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLinkImage(b)
		if err != nil {
			return
		}
		again, err := DecodeLinkImage(l.Append(nil))
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%+v was encoded and decoded as %+v, %v, want the same", l, again, err)
		}
	})
}
