package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/png"
	"math"
	"net/url"
	"regexp"
	"strconv"
)

// BrandingID is the ID of the branding of the cluster; BrandingIDOf returns that of an
// organization.
const BrandingID = "brand-000000000000"

// BrandingSpec is branding in the form that the store keeps.
type BrandingSpec struct {
	ProductName  string `json:"productName,omitempty"`
	AccentColor  string `json:"accentColor,omitempty"`
	SupportEmail string `json:"supportEmail,omitempty"`
	SupportURL   string `json:"supportURL,omitempty"`
	Logo         []byte `json:"logo,omitempty"` // PNG, as returned by CleanLogo
}

// StoredBranding is the stored branding object.
type StoredBranding struct {
	Kind Kind
	Meta Meta
	Spec BrandingSpec
}

// View returns the public part of the branding, which needs no sign-in to read.
func (b StoredBranding) View() Branding {
	s := b.Spec
	out := Branding{Revision: b.Meta.Revision, ProductName: s.ProductName, AccentColor: s.AccentColor, SupportEmail: s.SupportEmail, SupportURL: s.SupportURL}
	if len(s.Logo) > 0 {
		sum := sha256.Sum256(s.Logo)
		out.Logo = hex.EncodeToString(sum[:8])
	}
	return out
}

// Spec returns the branding in the form that the store keeps, with a logo.
func (b Branding) Spec(logo []byte) BrandingSpec {
	return BrandingSpec{ProductName: b.ProductName, AccentColor: b.AccentColor, SupportEmail: b.SupportEmail, SupportURL: b.SupportURL, Logo: logo}
}

// Limits of branding.
const (
	// MaxLogoBytes limits the size of an uploaded logo.
	MaxLogoBytes = 64 << 10
	// maxKeptLogo limits its re-encoded form, whose compression differs.
	maxKeptLogo     = 4 * MaxLogoBytes
	maxLogoPixels   = 512 // each way
	maxProductName  = 64
	maxSupportURL   = 2048
	leastContrast   = 4.5 // WCAG 2, AA, of text
	leastLogoPixels = 16
)

var colorPattern = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// ValidateBranding checks everything except the logo.
func ValidateBranding(b Branding) error {
	if len(b.ProductName) > maxProductName || hasControl(b.ProductName) {
		return invalid("productName", "must have at most %d bytes and no control characters", maxProductName)
	}
	if err := ValidateAccent(b.AccentColor); err != nil {
		return err
	}
	if b.SupportEmail != "" && (len(b.SupportEmail) > maxLoginBytes || !loginPattern.MatchString(b.SupportEmail)) {
		return invalid("supportEmail", "%q is not a valid e-mail address", clip(b.SupportEmail)).WithHint("e.g. help@example.com, in lower case")
	}
	if b.SupportURL != "" {
		u, err := url.Parse(b.SupportURL)
		if err != nil || len(b.SupportURL) > maxSupportURL || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || hasControl(b.SupportURL) {
			return invalid("supportURL", "%q is not a valid URL of a page", clip(b.SupportURL)).WithHint("want http:// or https://")
		}
	}
	return nil
}

// ValidateOrganizationBranding checks the branding of a reseller: its name is shown where the
// cluster's would, so that everything else needs one.
func ValidateOrganizationBranding(b Branding) error {
	if b.ProductName == "" && b.AccentColor+b.SupportEmail+b.SupportURL != "" {
		return invalid("productName", "is required").WithHint("without a name the branding is that of the next organization above")
	}
	return ValidateBranding(b)
}

// ValidateAccent checks that white text is readable on a color.
func ValidateAccent(color string) error {
	if color == "" {
		return nil
	}
	if !colorPattern.MatchString(color) {
		return invalid("accentColor", "%q is not a valid colour", clip(color)).WithHint("e.g. #0b5cad, in lower case")
	}
	if c := whiteContrast(color); c < leastContrast {
		return invalid("accentColor", "white text on %s has too little contrast: %.1f", color, math.Floor(c*10)/10).
			WithHint("choose a darker colour: want a contrast of at least %.1f", leastContrast)
	}
	return nil
}

// whiteContrast returns the contrast of white text on a color that matches colorPattern
// (WCAG 2, "contrast ratio").
func whiteContrast(color string) float64 {
	n, _ := strconv.ParseUint(color[1:], 16, 32)
	linear := func(shift uint) float64 {
		v := float64(n>>shift&0xff) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 1.05 / (0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0) + 0.05)
}

// CleanLogo re-encodes a logo from its pixels. Anything else in the file (text,
// profiles, content that another program would read as a different format) is dropped.
func CleanLogo(raw []byte) ([]byte, error) {
	if len(raw) > MaxLogoBytes {
		return nil, invalid("logo", "must be at most %s", sizeText(MaxLogoBytes)).WithHint("make the picture smaller")
	}
	// Check the dimensions before decoding: a small file can describe an image that
	// exhausts memory.
	c, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, invalid("logo", "is not a PNG image").WithHint("SVG is not supported, as it can contain scripts: export it as PNG")
	}
	if c.Width < leastLogoPixels || c.Height < leastLogoPixels || c.Width > maxLogoPixels || c.Height > maxLogoPixels {
		return nil, invalid("logo", "must not have %d by %d pixels", c.Width, c.Height).WithHint("want %d to %d pixels in each direction", leastLogoPixels, maxLogoPixels)
	}
	var picture image.Image
	if picture, err = png.Decode(bytes.NewReader(raw)); err != nil {
		return nil, invalid("logo", "the PNG image is damaged").WithHint("export it again")
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, picture); err != nil {
		return nil, Errorf(CodeInternal, "encode logo: %v", err)
	}
	if out.Len() > maxKeptLogo {
		return nil, invalid("logo", "must need at most %s uncompressed", sizeText(maxKeptLogo)).WithHint("make the picture smaller")
	}
	return out.Bytes(), nil
}
