package api

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func TestBranding(t *testing.T) {
	good := Branding{ProductName: "Example Cloud", AccentColor: "#0b5cad", SupportEmail: "help@example.com", SupportURL: "https://example.com/help"}
	if err := ValidateBranding(good); err != nil {
		t.Fatal(err)
	}
	if err := ValidateBranding(Branding{}); err != nil {
		t.Fatal(err)
	}
	for field, changes := range map[string][]func(*Branding){
		"productName": {func(b *Branding) { b.ProductName = string(make([]byte, 65)) }, func(b *Branding) { b.ProductName = "a\nb" }},
		"accentColor": {
			func(b *Branding) { b.AccentColor = "red" }, func(b *Branding) { b.AccentColor = "#0B5CAD" }, func(b *Branding) { b.AccentColor = "#fff" },
			func(b *Branding) { b.AccentColor = "#ffcc00" }, func(b *Branding) { b.AccentColor = "#777777" }, // 4.48
		},
		"supportEmail": {func(b *Branding) { b.SupportEmail = "help" }},
		"supportURL": {
			func(b *Branding) { b.SupportURL = "javascript:alert(1)" }, func(b *Branding) { b.SupportURL = "//example.com" },
			func(b *Branding) { b.SupportURL = "https://user:secret@example.com" },
		},
	} {
		for i, change := range changes {
			b := good
			change(&b)
			var err *Error
			if !errors.As(ValidateBranding(b), &err) || err.Field != field {
				t.Errorf("%s, change %d: ValidateBranding = %v, want an error for that field", field, i, err)
			}
		}
	}
	if err := ValidateAccent("#767676"); err != nil { // 4.54
		t.Error(err)
	}
}

func picture(width, height int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	m.Set(3, 3, color.NRGBA{R: 200, A: 128})
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// TestCleanLogo checks that nothing but the pixels of a logo is kept.
func TestCleanLogo(t *testing.T) {
	raw := picture(64, 32)
	got, err := CleanLogo(append(bytes.Clone(raw), "<script>alert(1)</script>"...))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(got, []byte("script")) {
		t.Error("the cleaned logo contains the data appended to the picture, want it removed")
	}
	m, err := png.Decode(bytes.NewReader(got))
	if err != nil || m.Bounds().Dx() != 64 || m.Bounds().Dy() != 32 {
		t.Fatalf("decode the cleaned logo: picture %v, error %v, want 64x32 pixels", m, err)
	}
	if r, _, _, a := m.At(3, 3).RGBA(); r == 0 || a == 0xffff {
		t.Errorf("pixel (3,3) of the cleaned logo has red %d and alpha %#x, want the original's", r, a)
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "cut off": raw[:len(raw)-20],
		"too wide": picture(513, 32), "too small": picture(8, 8), "too long": make([]byte, MaxLogoBytes+1),
	} {
		if _, err := CleanLogo(bad); CodeOf(err) != CodeInvalid {
			t.Errorf("CleanLogo of a logo that is %s = %v, want code %s", name, err, CodeInvalid)
		}
	}
}

func FuzzCleanLogo(f *testing.F) {
	f.Add(picture(16, 16))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := CleanLogo(raw)
		if err != nil {
			return
		}
		if len(got) > maxKeptLogo {
			t.Fatalf("cleaned logo has %d bytes, want at most %d", len(got), maxKeptLogo)
		}
		if _, err := png.Decode(bytes.NewReader(got)); err != nil {
			t.Fatal(err)
		}
	})
}
